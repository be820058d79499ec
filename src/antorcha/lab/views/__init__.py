"""Pictures of the learner's own models, in the child process: what fits a program is offered.

``plane`` (two inputs: what a model says of each point), ``flow`` (what each layer makes of an
input), ``pad`` (what it reads in a drawing), ``attention`` (who looks at whom). What is offered is
found without running anything of the learner's (`offers`); a picture runs the model once.
"""
