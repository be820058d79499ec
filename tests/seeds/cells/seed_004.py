# Seed 004: ¿Por qué los tensores son importantes?
# The answers to the page's questions and to its challenge, as code.
# Written for tests/seeds/notebook.py, whose docstring explains the marks.

# %% setup
import torch
torch.manual_seed(0);

# %% [question 1]
# Which command creates a 5 x 5 tensor of uniformly distributed numbers between 0 and 1?
torch.rand(5, 5).shape, bool((torch.rand(5, 5) < 1).all()), bool((torch.rand(5, 5) >= 0).all())
# >>> expected
# (torch.Size([5, 5]), True, True)

# %% [question 1, the wrong answers] raises=AttributeError
torch.random(5, 5) if callable(torch.random) else torch.uniform(5, 5)

# %% [question 2] raises=RuntimeError raises-without-cuda=AssertionError
# Tensor A is on the CPU, tensor B on the CUDA device: an error occurs.
A = torch.ones(3)
B = torch.ones(3, device='cuda')
A + B

# %% [question 3]
torch.nn.Linear(10, 5).weight.dtype
# >>> expected
# torch.float32

# %% [challenge, what is given]
F = torch.arange(10.)
W = torch.ones(10, 5)
F.shape, W.shape
# >>> expected
# (torch.Size([10]), torch.Size([10, 5]))

# %% [step 1]
F_new = F.unsqueeze(0)
F_new.shape
# >>> expected
# torch.Size([1, 10])

# %% [step 1, the other way]
F_new = F.view(1, -1)
F_new.shape
# >>> expected
# torch.Size([1, 10])

# %% [step 2]
output = F_new @ W
output
# >>> expected
# tensor([[45., 45., 45., 45., 45.]])

# %% [step 2, the other way]
output = torch.matmul(F_new, W)
output
# >>> expected
# tensor([[45., 45., 45., 45., 45.]])

# %% [step 3, what is given]
F = torch.rand(5, 10)
F.shape
# >>> expected
# torch.Size([5, 10])

# %% [step 3]
F_flat = F.view(-1)
F_flat.shape
# >>> expected
# torch.Size([50])

# %% [step 3, the other way]
F_flat = F.reshape(50)
F_flat.shape
# >>> expected
# torch.Size([50])
