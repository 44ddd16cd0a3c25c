"""Proctor's tests. A package, so that no installed package of that name can shadow it."""
