"""The control plane: what makes a run happen."""
