"""Fused kernels for recurrent cells."""
