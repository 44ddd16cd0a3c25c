"""Authoring formats: files of an eval set -> the one model, with every fault told at its place."""
