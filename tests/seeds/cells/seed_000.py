# Seed 000: Introducción a PyTorch: Tensores y Gradientes (Fernando Carazo, CC BY 4.0)
# The code cells of the page, verbatim, each with the text that the page shows under it.
# Written for tests/seeds/notebook.py, whose docstring explains the marks.
# Cells 50 and 68 are commented out on the page, which says what error they give; here they also run.

# %% [42]
# Librerías utilizadas en el documento
# ==============================================================================
import torch
import numpy as np

# %% [43]
print(f"Versión de PyTorch: {torch.__version__}")
# >>> expected
# Versión de PyTorch: «2.0.1+cu118»

# %% [44]
# Escalares en PyTorch (tensor de orden 0)
# ======================================================================================
t1 = torch.tensor(4.)
print(t1)
print("Orden del tensor:", t1.dim())
# >>> expected
# tensor(4.)
# Orden del tensor: 0

# %% [45]
# Tipo de dato de un tensor
# ======================================================================================
t1.dtype
# >>> expected
# torch.float32

# %% [46]
# Vector de 1 dimensión (tensor de orden 1)
# ======================================================================================
t2 = torch.tensor([1, 2, 3, 4])
print(t2)
print(f"Orden del tensor: {t2.ndim}")
print(f"Forma del tensor: {t2.shape}")
print(f"Tipo de dato del tensor: {t2.dtype}")
# >>> expected
# tensor([1, 2, 3, 4])
# Orden del tensor: 1
# Forma del tensor: torch.Size([4])
# Tipo de dato del tensor: torch.int64

# %% [47]
t2_mix = torch.tensor([1.0, 2, 3, 4])
print(t2_mix)
print(f"Orden del tensor: {t2_mix.ndim}")
print(f"Forma del tensor: {t2_mix.shape}")
print(f"Tipo de dato del tensor: {t2_mix.dtype}")
# >>> expected
# tensor([1., 2., 3., 4.])
# Orden del tensor: 1
# Forma del tensor: torch.Size([4])
# Tipo de dato del tensor: torch.float32

# %% [48]
# Matrices 
# ======================================================================================
t3 = torch.tensor([[5., 6], 
                   [7, 8], 
                   [9, 10]])
print(t3)
print(f"Orden del tensor: {t3.ndim}")
print(f"Forma del tensor: {t3.shape}")
print(f"Tipo de dato del tensor: {t3.dtype}")
# >>> expected
# tensor([[ 5.,  6.],
#         [ 7.,  8.],
#         [ 9., 10.]])
# Orden del tensor: 2
# Forma del tensor: torch.Size([3, 2])
# Tipo de dato del tensor: torch.float32

# %% [49]
# Tensor tridimensional
# ======================================================================================
t4 = torch.tensor([
    [[11, 12, 13, 10],
     [11, 12, 13, 10], 
     [13, 14, 15, 10]], 
    [[15, 16, 17, 10], 
     [11, 12, 13, 10],
     [17, 18, 19., 10]]])
t4
# >>> expected
# tensor([[[11., 12., 13., 10.],
#          [11., 12., 13., 10.],
#          [13., 14., 15., 10.]],
#
#         [[15., 16., 17., 10.],
#          [11., 12., 13., 10.],
#          [17., 18., 19., 10.]]])

# %% [50]
# Tensor con dimensiones imcompatibles
# ======================================================================================
# t5 = torch.tensor([[5., 6, 11], 
#                    [7, 8], 
#                    [9, 10]])

# %% [50, without the comment marks] raises=ValueError
t5 = torch.tensor([[5., 6, 11], 
                   [7, 8], 
                   [9, 10]])

# %% [51] numbers
# Tensor con valores aleatorios de dimensiones (3, 4)
# ======================================================================================
tensor_aleatorio = torch.rand(size=(3, 4))
print(tensor_aleatorio)
print(f"Orden del tensor: {tensor_aleatorio.ndim}")
print(f"Forma del tensor: {tensor_aleatorio.shape}")
print(f"Tipo de dato del tensor: {tensor_aleatorio.dtype}")
# >>> expected
# tensor([[0.4437, 0.7655, 0.8468, 0.9520],
#         [0.7143, 0.4448, 0.9016, 0.3687],
#         [0.3581, 0.4679, 0.4203, 0.8183]])
# Orden del tensor: 2
# Forma del tensor: torch.Size([3, 4])
# Tipo de dato del tensor: torch.float32

# %% [52]
# Suma
# ======================================================================================
tensor = torch.tensor([1, 2, 3])
tensor + 10
# >>> expected
# tensor([11, 12, 13])

# %% [53]
# Multiplicación por un escalar
# ======================================================================================
tensor * 10
# >>> expected
# tensor([10, 20, 30])

# %% [54]
# Resta
# ======================================================================================
tensor = tensor - 10
tensor
# >>> expected
# tensor([-9, -8, -7])

# %% [55]
tensor = torch.tensor([1, 2, 3])

# %% [56]
# Multiplicación elemento a elemento de tensores
# ======================================================================================
tensor = torch.tensor([1, 2, 3])
tensor * tensor
# >>> expected
# tensor([1, 4, 9])

# %% [57]
# Multiplicación matricial con el operador @
# ======================================================================================
tensor @ tensor
# >>> expected
# tensor(14)

# %% [58]
# Multiplicación matricial con el método matmul
# ======================================================================================
torch.matmul(tensor, tensor)
# >>> expected
# tensor(14)

# %% [59]
# Cálculo del valor máximo, mínimo, média y suma de un tensor
# ======================================================================================
x = torch.tensor([1,2,1,3,1,2], dtype=torch.float32)  # para calcular la media hay que convertir a float
print(f"Min: {x.min()}")
print(f"Max: {x.max()}")
print(f"Media: {x.mean()}")
print(f"Suma: {x.sum()}")
# >>> expected
# Min: 1.0
# Max: 3.0
# Media: 1.6666666269302368
# Suma: 10.0

# %% [60]
# Obtención del índice del valor máximo y mínimo de un tensor
# ======================================================================================
tensor = torch.arange(10, 100, 10)
print(f"Tensor: {tensor}")

# Se devuelve el índice del valor máximo y mínimo
print(f"Index where max value occurs: {tensor.argmax()}")
print(f"Index where min value occurs: {tensor.argmin()}")
# >>> expected
# Tensor: tensor([10, 20, 30, 40, 50, 60, 70, 80, 90])
# Index where max value occurs: 8
# Index where min value occurs: 0

# %% [61]
# Tensor de 1 dimensión con los valores del 1 al 7
# ======================================================================================
x = torch.arange(1., 8.)
print(x)
print(x.shape)
# >>> expected
# tensor([1., 2., 3., 4., 5., 6., 7.])
# torch.Size([7])

# %% [62]
x_reshaped = x.reshape(1, 7)
print(x_reshaped)
print(x_reshaped.shape)
# >>> expected
# tensor([[1., 2., 3., 4., 5., 6., 7.]])
# torch.Size([1, 7])

# %% [63]
x_view_reshaped= x.view(1, 7)
print(x_view_reshaped)
print(x_view_reshaped.shape)
# >>> expected
# tensor([[1., 2., 3., 4., 5., 6., 7.]])
# torch.Size([1, 7])

# %% [64]
x_view_reshaped[:, 0] = 500
print(x_view_reshaped)
print(x)
# >>> expected
# tensor([[500.,   2.,   3.,   4.,   5.,   6.,   7.]])
# tensor([500.,   2.,   3.,   4.,   5.,   6.,   7.])

# %% [65]
x = torch.randn(10, 10, 3)
x.shape
# >>> expected
# torch.Size([10, 10, 3])

# %% [66]
y = x.reshape(30,10)
print(y.shape)
# >>> expected
# torch.Size([30, 10])

# %% [67]
y = x.reshape(3,10,10)
print(y.shape)
# >>> expected
# torch.Size([3, 10, 10])

# %% [68]
# Dimensiones incompatibles
# y = x.reshape(4,10,10)
# print(y.shape)

# %% [68, without the comment marks] raises=RuntimeError
y = x.reshape(4,10,10)
print(y.shape)

# %% [69]
y = x.reshape(3, -1, 10)
print(y.shape)
# >>> expected
# torch.Size([3, 10, 10])

# %% [70]
# Apilar tensores - horizontalmente
# ======================================================================================
x = torch.tensor([1, 2, 3, 4])
x_stacked = torch.stack([x, x, x, x], dim=0) 
print(x_stacked)
print(x_stacked.shape)
# >>> expected
# tensor([[1, 2, 3, 4],
#         [1, 2, 3, 4],
#         [1, 2, 3, 4],
#         [1, 2, 3, 4]])
# torch.Size([4, 4])

# %% [71]
# Apilar tensores - verticalmente
# ======================================================================================
x = torch.tensor([1, 2, 3, 4])
x_stacked = torch.stack([x, x, x, x], dim=1)
print(x_stacked)    
print(x_stacked.shape)
# >>> expected
# tensor([[1, 1, 1, 1],
#         [2, 2, 2, 2],
#         [3, 3, 3, 3],
#         [4, 4, 4, 4]])
# torch.Size([4, 4])

# %% [72]
# Permutar tensor
# ======================================================================================
x_original = torch.rand(size=(224, 224, 3))
x_permuted = x_original.permute(2, 0, 1) # shifts axis 0->1, 1->2, 2->0
print(f"Shape de x_original: {x_original.shape}")
print(f"Shape de x_permuted: {x_permuted.shape}")
# >>> expected
# Shape de x_original: torch.Size([224, 224, 3])
# Shape de x_permuted: torch.Size([3, 224, 224])

# %% [73]
# Creación de tensores
# ======================================================================================
x = torch.tensor(3.)
w = torch.tensor(4., requires_grad=True)
b = torch.tensor(5., requires_grad=True)
print(x)
print(w)
print(b)
# >>> expected
# tensor(3.)
# tensor(4., requires_grad=True)
# tensor(5., requires_grad=True)

# %% [74]
y = w * x**2 + b
y
# >>> expected
# tensor(41., grad_fn=<AddBackward0>)

# %% [75]
# Calculo de las derivadas
# ======================================================================================
y.backward()

# %% [76]
# Obtención de las derivadas
# ======================================================================================
print('dy/dx:', x.grad)
print('dy/dw:', w.grad)
print('dy/db:', b.grad)
# >>> expected
# dy/dx: None
# dy/dw: tensor(9.)
# dy/db: tensor(1.)

# %% [77]
x = torch.tensor(3., requires_grad=True)
y = 2*x**2
y.backward()
x.grad
# >>> expected
# tensor(12.)

# %% [78]
# Conversion de numpy a tensores
# ======================================================================================
x_numpy = np.array([[1, 2], [3, 4.]])
x_tensor = torch.from_numpy(x_numpy)
print(x_numpy)
print(x_tensor)
print(f"dtype de x_numpy: {x_numpy.dtype}")
print(f"dtype de x_tensor: {x_tensor.dtype}")
# >>> expected
# [[1. 2.]
#  [3. 4.]]
# tensor([[1., 2.],
#         [3., 4.]], dtype=torch.float64)
# dtype de x_numpy: float64
# dtype de x_tensor: torch.float64

# %% [79]
# Conversion de tensores a numpy
# ======================================================================================
x_tensor = torch.tensor([[1, 2], [3, 4.]])
x_numpy = x_tensor.numpy()
print(x_tensor)
print(x_numpy)
print(f"dtype de x_tensor: {x_tensor.dtype}")
print(f"dtype de x_numpy: {x_numpy.dtype}")
# >>> expected
# tensor([[1., 2.],
#         [3., 4.]])
# [[1. 2.]
#  [3. 4.]]
# dtype de x_tensor: torch.float32
# dtype de x_numpy: float32

# %% [80]
import session_info
session_info.show(html=False)
# >>> expected
# -----
# «numpy               1.24.3
# session_info        1.0.0
# torch               2.0.1+cu118
# -----
# IPython             8.12.0
# jupyter_client      8.1.0
# jupyter_core        5.3.0
# -----
# Python 3.10.10 | packaged by Anaconda, Inc. | (main, Mar 21 2023, 18:39:17) [MSC v.1916 64 bit (AMD64)]
# Windows-10-10.0.19045-SP0»
# -----
# Session information updated at «2023-09-19 23:39»
