"""Warehouses: reading them and branching them, one package per engine."""
