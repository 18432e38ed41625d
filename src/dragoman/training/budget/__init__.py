"""Plan a run for a budget of minutes, and keep to it: shape, batch, schedule, precision.

Times updates by `dragoman.training.updates`; the run (`dragoman.training.run`) asks it once.
"""
