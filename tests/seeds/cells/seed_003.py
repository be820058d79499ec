# Seed 003: Pytorch - Introducción (NumPy + Autograd + GPU)
# The code cells of the page, verbatim, each with the text that the page shows under it.
# Written for tests/seeds/notebook.py, whose docstring explains the marks.
# The page ran on a machine whose NumPy made int32 arrays: its dtype in cell 5 is not everywhere's.
# Cell 24 shows, without a GPU, "AssertionError: Torch not compiled with CUDA enabled"; antorcha raises
# the same class and says what to do instead.

# %% [1]
import torch

# %% [2]
# matriz de ceros, 5 filas y 3 columnas

x = torch.zeros(5, 3)
x
# >>> expected
# tensor([[0., 0., 0.],
#         [0., 0., 0.],
#         [0., 0., 0.],
#         [0., 0., 0.],
#         [0., 0., 0.]])

# %% [3] numbers
# tensor con valores aleatorios

x = torch.randn(5, 3, 2)
x
# >>> expected
# tensor([[[ 0.4085,  0.1492],
#          [-0.3065, -0.3972],
#          [-0.9104,  0.4946]],
#
#         [[-1.0368, -1.8317],
#          [-0.2983,  0.1285],
#          [-0.2682, -1.6739]],
#
#         [[ 0.1817, -0.4391],
#          [-1.5879,  0.4627],
#          [ 0.4037,  0.2123]],
#
#         [[ 0.8303,  0.2736],
#          [-1.5003,  0.7714],
#          [-0.8558,  0.1547]],
#
#         [[ 1.2789,  1.3012],
#          [ 0.3494,  2.0338],
#          [-1.3126, -0.1815]]])

# %% [4]
# tensor a partir de lista 

x = torch.tensor([[1, 2, 3],[4, 5, 6]])
x
# >>> expected
# tensor([[1, 2, 3],
#         [4, 5, 6]])

# %% [5]
import numpy as np

# tensor a partir de array

a = np.array([[1, 2, 3],[4, 5, 6]])
x = torch.from_numpy(a)
x
# >>> expected
# tensor([[1, 2, 3],
#         [4, 5, 6]]«, dtype=torch.int32»)

# %% [6] numbers
# operaciones

x = torch.randn(3, 3)
y = torch.randn(3, 3)

x, y
# >>> expected
# (tensor([[ 0.6251,  0.2682, -0.0485],
#          [ 1.7609,  0.0925,  0.1266],
#          [ 0.3453, -1.6688,  0.4845]]),
#  tensor([[-1.0122, -0.7118, -0.2288],
#          [ 2.0132, -1.6643,  0.8877],
#          [ 0.3299,  0.9017,  0.1258]]))

# %% setup
# The numbers that the page drew in cell 6: x as cell 17 shows it, in full; y with the fifth digit
# that the sums and differences of cells 7 and 8 tell.
x = torch.tensor([[ 0.6251061 ,  0.26821104, -0.04845389],
                  [ 1.7608535 ,  0.09249022,  0.12663704],
                  [ 0.34528732, -1.6688324 ,  0.4844624 ]])
y = torch.tensor([[-1.0122, -0.7118, -0.22882],
                  [ 2.01317, -1.6643,  0.88773],
                  [ 0.3299,  0.9017,  0.1258]])

# %% [7]
x + y
# >>> expected
# tensor([[-0.3871, -0.4436, -0.2773],
#         [ 3.7740, -1.5718,  1.0144],
#         [ 0.6752, -0.7671,  0.6103]])

# %% [8]
x - y
# >>> expected
# tensor([[ 1.6373,  0.9800,  0.1804],
#         [-0.2523,  1.7568, -0.7611],
#         [ 0.0154, -2.5705,  0.3587]])

# %% [9]
# indexado

# primera fila

x[0]
# >>> expected
# tensor([ 0.6251,  0.2682, -0.0485])

# %% [10]
# primera fila, primera columna

x[0, 0]
# >>> expected
# tensor(0.6251)

# %% [11]
# primera columna

x[0, :]
# >>> expected
# tensor([ 0.6251,  0.2682, -0.0485])

# %% [12]
# troceado

x[:-1, 1:]
# >>> expected
# tensor([[ 0.2682, -0.0485],
#         [ 0.0925,  0.1266]])

# %% [13]
x.shape
# >>> expected
# torch.Size([3, 3])

# %% [14]
# añadimos una dimensión extra

x.view(1, 3, 3).shape
# >>> expected
# torch.Size([1, 3, 3])

# %% [15]
# estiramos en una sola dimensión

x.view(9).shape
# >>> expected
# torch.Size([9])

# %% [16]
# usamos -1 para asignar todos los valores restantes a una dimensión

x.view(-1).shape
# >>> expected
# torch.Size([9])

# %% [17]
x.numpy()
# >>> expected
# array([[ 0.6251061 ,  0.26821104, -0.04845389],
#        [ 1.7608535 ,  0.09249022,  0.12663704],
#        [ 0.34528732, -1.6688324 ,  0.4844624 ]], dtype=float32)

# %% [18]
x = torch.tensor(1., requires_grad=True)
y = torch.tensor(2., requires_grad=True)
p = x + y

z = torch.tensor(3., requires_grad=True)
g = p * z

# %% [19]
g.backward()

# %% [20]
z.grad
# >>> expected
# tensor(3.)

# %% [21]
x.grad
# >>> expected
# tensor(3.)

# %% [22]
y.grad
# >>> expected
# tensor(3.)

# %% [23]
# comprobar que podemos usar GPU

torch.cuda.is_available()
# >>> expected
# «False»

# %% [3, again]
x = torch.randn(10000,10000)
y = torch.randn(10000,10000)

%time z = x*y
# >>> expected
# CPU times: user «205 ms», sys: «283 ms», total: «488 ms»
# Wall time: «48.3 ms»

# %% [None] raises-without-cuda=AssertionError
x = torch.randn(10000,10000).cuda()
y = torch.randn(10000,10000).cuda()

%time z = x*y

# %% [24] raises-without-cuda=AssertionError
device = torch.device("cuda")

x = torch.randn((10000,10000), device="cuda")
x = x.cuda()
x = x.to("cuda")
x = x.to(device)

# %% [25]
device = torch.device("cpu")

x = x.cpu()
x = x.to("cpu")
x = x.to(device)

