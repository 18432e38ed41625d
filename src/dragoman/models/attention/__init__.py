"""Attention: who looks where, and what they see there."""
