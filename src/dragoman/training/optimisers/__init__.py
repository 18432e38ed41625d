"""Optimisers and learning rates: Adam, Muon, schedule-free AdamW, schedules, the search for a rate.

May import options and kernels of the project; knows neither batches nor models' families.
"""
