"""The paper's figures, one module each; ``python -m experiments NAME [--quick]``."""
