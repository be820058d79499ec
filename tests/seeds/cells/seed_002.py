# Seed 002: tensores: crear, memoria, atributos, gradientes, NumPy
# The code cells of the page, verbatim, each with the text that the page shows under it.
# Written for tests/seeds/notebook.py, whose docstring explains the marks.
# The page cuts the output of cells 85 and 98 short; «» stands where it does.

# %% [66]
import torch
import numpy as np
print(f'PyTorch version: {torch.__version__}')
print(f'Is MPS available? {torch.backends.mps.is_available()}')
print(f'Does MPS exists? {torch.backends.mps.is_built()}')
# >>> expected
# PyTorch version: «2.6.0»
# Is MPS available? «True»
# Does MPS exists? «True»

# %% [67]
# Create a scalar
scalar = torch.tensor(7.0)
scalar
# >>> expected
# tensor(7.)

# %% [68]
# Get a tensor back as an integer or float
print(f'Escalar: {scalar.item()}. Type: {type(scalar.item())}')
# >>> expected
# Escalar: 7.0. Type: <class 'float'>

# %% [69]
# Create a vector
vector = torch.tensor([7, 7])
vector
# >>> expected
# tensor([7, 7])

# %% [70]
# Dimensions
print(f'Number of dimensions: {vector.ndim}')
# >>> expected
# Number of dimensions: 1

# %% [71]
print(f'Shape: {vector.shape}')
# >>> expected
# Shape: torch.Size([2])

# %% [72]
MATRIX = torch.tensor([[7, 8], [8, 9]])
MATRIX
# >>> expected
# tensor([[7, 8],
#         [8, 9]])

# %% [73]
print(f'Number of dimensions: {MATRIX.ndim}')
# >>> expected
# Number of dimensions: 2

# %% [74]
print(f'Shape: {MATRIX.shape}')
# >>> expected
# Shape: torch.Size([2, 2])

# %% [75]
# Create a tensor
TENSOR = torch.tensor([[[1, 2, 3],
                        [4, 5, 6],
                        [7, 8, 9]]])
TENSOR
# >>> expected
# tensor([[[1, 2, 3],
#          [4, 5, 6],
#          [7, 8, 9]]])

# %% [76]
print(f'Number of dimensions: {TENSOR.ndim}')
# >>> expected
# Number of dimensions: 3

# %% [77]
print(f'Shape: {TENSOR.shape}')
# >>> expected
# Shape: torch.Size([1, 3, 3])

# %% [78]
MATRIX_1 = torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
MATRIX_2 = torch.tensor([[10, 11, 12], [13, 14, 15], [16, 17, 18]])

# The torch.tensor() class expects Python native data types, so in order to create a tensor from two tensors
TENSOR = torch.stack([MATRIX_1, MATRIX_2])
TENSOR
# >>> expected
# tensor([[[ 1,  2,  3],
#          [ 4,  5,  6],
#          [ 7,  8,  9]],
#
#         [[10, 11, 12],
#          [13, 14, 15],
#          [16, 17, 18]]])

# %% [79]
print(f'Number of dimensions: {TENSOR.ndim}')
# >>> expected
# Number of dimensions: 3

# %% [80]
print(f'Shape: {TENSOR.shape}')
# >>> expected
# Shape: torch.Size([2, 3, 3])

# %% setup
# The author ran the page more than once. When cell 81 ran, the generator stood as cell 88 leaves it:
# seed 42 with one (1, 5) tensor drawn. From there on every number of the page is determined.
torch.manual_seed(42)
torch.rand(size=(1, 5));

# %% [81]
# Tensor de dos dimensiones de tamaño (3, 4)
random_tensor = torch.rand(size=(2, 3))
random_tensor
# >>> expected
# tensor([[0.6009, 0.2566, 0.7936],
#         [0.9408, 0.1332, 0.9346]])

# %% [82]
print(f'Dimensions: {random_tensor.ndim}')
print(f'Tamaños: {random_tensor.shape}')
# >>> expected
# Dimensions: 2
# Tamaños: torch.Size([2, 3])

# %% [83]
random_tensor = torch.rand(size=(10, 2, 3))
random_tensor
# >>> expected
# tensor([[[0.5936, 0.8694, 0.5677],
#          [0.7411, 0.4294, 0.8854]],
#
#         [[0.5739, 0.2666, 0.6274],
#          [0.2696, 0.4414, 0.2969]],
#
#         [[0.8317, 0.1053, 0.2695],
#          [0.3588, 0.1994, 0.5472]],
#
#         [[0.0062, 0.9516, 0.0753],
#          [0.8860, 0.5832, 0.3376]],
#
#         [[0.8090, 0.5779, 0.9040],
#          [0.5547, 0.3423, 0.6343]],
#
#         [[0.3644, 0.7104, 0.9464],
#          [0.7890, 0.2814, 0.7886]],
#
#         [[0.5895, 0.7539, 0.1952],
#          [0.0050, 0.3068, 0.1165]],
#
#         [[0.9103, 0.6440, 0.7071],
#          [0.6581, 0.4913, 0.8913]],
#
#         [[0.1447, 0.5315, 0.1587],
#          [0.6542, 0.3278, 0.6532]],
#
#         [[0.3958, 0.9147, 0.2036],
#          [0.2018, 0.2018, 0.9497]]])

# %% [84]
print(f'Dimensions: {random_tensor.ndim}')
print(f'Tamaños: {random_tensor.shape}')
# >>> expected
# Dimensions: 3
# Tamaños: torch.Size([10, 2, 3])

# %% [85]
random_image_tensor = torch.rand(size=(3, 1024, 1024))
random_image_tensor
# >>> expected
# tensor([[[0.6666, 0.9811, 0.0874,  ..., 0.0707, 0.6793, 0.9227],
#          [0.5303, 0.1988, 0.9099,  ..., 0.8482, 0.8240, 0.6414],
#          [0.6738, 0.6613, 0.5519,  ..., 0.1718, 0.1639, 0.0116],
#          ...,
#          [0.2805, 0.7836, 0.6706,  ..., 0.5299, 0.3607, 0.4438],
#          [0.6341, 0.8021, 0.2384,  ..., 0.7361, 0.5131, 0.0082],
#          [0.2442, 0.3589, 0.8952,  ..., 0.6155, 0.4215, 0.6004]],
#
#         [[0.2620, 0.3809, 0.0809,  ..., 0.1393, 0.5335, 0.1217],
#          [0.7090, 0.4542, 0.6700,  ..., 0.2559, 0.0658, 0.7274],
#          [0.7688, 0.7784, 0.5482,  ..., 0.1722, 0.1141, 0.1717],
#          ...,
#          [0.5084, 0.3411, 0.4173,  ..., 0.2874, 0.1223, 0.0622],
#          [0.5953, 0.5328, 0.2545,  ..., 0.2621, 0.1383, 0.2893],
#          [0.7187, 0.6074, 0.9588,  ..., 0.7932, 0.8076, 0.1934]],
#
#         [[0.2462, 0.8442, 0.7218,  ..., 0.8065, 0.4769, 0.2840],
#          [0.3523, 0.1319, 0.9459,  ..., 0.8241, 0.6992, 0.9141],
#          [0.9984, 0.4112, 0.9072,  ..., 0.2477, 0.0688, 0.«»

# %% [86]
print(f'Dimensiones: {random_image_tensor.ndim}')
print(f'Shape: {random_image_tensor.shape}')
# >>> expected
# Dimensiones: 3
# Shape: torch.Size([3, 1024, 1024])

# %% [87]
torch.manual_seed(42)
random_tensor_1 = torch.rand(size=(1, 5))
random_tensor_2 = torch.rand(size=(1, 5))

print(f'Random tensor 1: {random_tensor_1}')
print(f'Random tensor 2: {random_tensor_2}')

# We can compare two tensors using the function torch.equal() or the operator ==
print(f'Are the tensors equal? {torch.equal(random_tensor_1, random_tensor_2)}')
# >>> expected
# Random tensor 1: tensor([[0.8823, 0.9150, 0.3829, 0.9593, 0.3904]])
# Random tensor 2: tensor([[0.6009, 0.2566, 0.7936, 0.9408, 0.1332]])
# Are the tensors equal? False

# %% [88]
torch.manual_seed(42) # Definimos la semilla para el primer tensor
random_tensor_1 = torch.rand(size=(1, 5))
torch.manual_seed(42) # Definimos la semilla para el segundo tensor
random_tensor_2 = torch.rand(size=(1, 5))

print(f'Random tensor 1: {random_tensor_1}')
print(f'Random tensor 2: {random_tensor_2}')

# We can compare two tensors using the function torch.equal() or the operator ==
print(f'Are the tensors equal? {torch.equal(random_tensor_1, random_tensor_2)}')
# >>> expected
# Random tensor 1: tensor([[0.8823, 0.9150, 0.3829, 0.9593, 0.3904]])
# Random tensor 2: tensor([[0.8823, 0.9150, 0.3829, 0.9593, 0.3904]])
# Are the tensors equal? True

# %% [89]
range_tensor = torch.arange(start=0, end=1000, step=36)
range_tensor
# >>> expected
# tensor([  0,  36,  72, 108, 144, 180, 216, 252, 288, 324, 360, 396, 432, 468,
#         504, 540, 576, 612, 648, 684, 720, 756, 792, 828, 864, 900, 936, 972])

# %% [90]
print(f'Dimension: {range_tensor.ndim}')
print(f'Shape: {range_tensor.shape}')
print(f'Dtype: {range_tensor.dtype}')
# >>> expected
# Dimension: 1
# Shape: torch.Size([28])
# Dtype: torch.int64

# %% [91]
zeros = torch.zeros_like(input=range_tensor)
zeros
# >>> expected
# tensor([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
#         0, 0, 0, 0])

# %% [92]
print(f'Dimension: {zeros.ndim}')
print(f'Shape: {zeros.shape}')
print(f'Dtype: {zeros.dtype}')
# >>> expected
# Dimension: 1
# Shape: torch.Size([28])
# Dtype: torch.int64

# %% [93]
TENSOR_0 = torch.tensor([3., 2., 1.], dtype=torch.float64)
TENSOR_0
# >>> expected
# tensor([3., 2., 1.], dtype=torch.float64)

# %% [94]
TENSOR_0.dtype
# >>> expected
# torch.float64

# %% [95]
# Change tensor's datatype
TENSOR_1 = TENSOR_0.to(dtype=torch.float16) # or use torch.Tensor.to()
TENSOR_1
# >>> expected
# tensor([3., 2., 1.], dtype=torch.float16)

# %% [96]
TENSOR_0 * TENSOR_1
# >>> expected
# tensor([9., 4., 1.], dtype=torch.float64)

# %% [97]
TENSOR.device
# >>> expected
# device(type='cpu')

# %% [98]
# Define a torch.device
torch_device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')

# Create a new tensor with specified device
TENSOR_2 = torch.rand(size=(3, 1024, 1024), device='cpu')
print(f'Tensor: {TENSOR_2}')
print(f'Device: {TENSOR_2.device}')
# >>> expected
# Tensor: tensor([[[0.6009, 0.2566, 0.7936,  ..., 0.7124, 0.2065, 0.5760],
#          [0.1976, 0.7499, 0.2813,  ..., 0.3988, 0.7365, 0.6829],
#          [0.0499, 0.2046, 0.5168,  ..., 0.3662, 0.0104, 0.4482],
#          ...,
#          [0.8996, 0.0490, 0.7916,  ..., 0.8479, 0.9953, 0.1614],
#          [0.0894, 0.1535, 0.1571,  ..., 0.3873, 0.8991, 0.6478],
#          [0.0201, 0.3778, 0.1633,  ..., 0.9565, 0.9679, 0.9763]],
#
#         [[0.8273, 0.4332, 0.7660,  ..., 0.5370, 0.0109, 0.8638],
#          [0.0710, 0.9027, 0.1023,  ..., 0.8887, 0.2716, 0.5103],
#          [0.0258, 0.8463, 0.4397,  ..., 0.2049, 0.7828, 0.2040],
#          ...,
#          [0.0307, 0.5348, 0.4726,  ..., 0.1216, 0.4119, 0.9457],
#          [0.0489, 0.9974, 0.1015,  ..., 0.6457, 0.5405, 0.1967],
#          [0.7970, 0.3450, 0.1873,  ..., 0.0286, 0.7181, 0.1854]],
#
#         [[0.5284, 0.8363, 0.7645,  ..., 0.4472, 0.3017, 0.6413],
#          [0.6611, 0.7715, 0.3460,  ..., 0.7348, 0.1475, 0.1933],
#          [0.4940, 0.4051, 0.1993,  ..., 0.4237, 0.«»

# %% [99]
TENSOR_2 = TENSOR_2.to(device='mps')
print(f'Device: {TENSOR_2.device}')
# >>> expected
# Device: mps:0

# %% [100]
# Creates a tensor and operates on it
X = torch.tensor([3., 2., 1.], requires_grad=True, device='mps')

# Sum all elements of the tensor and compute the gradients
y = X.sum()
y.backward()
print(f'Gradients after automatic differentiation: {TENSOR_0.grad}')
# >>> expected
# Gradients after automatic differentiation: None

# %% [101]
array = np.arange(1., 10.).reshape((3, 3))
print(f'Array de NumPy: \n{array}')
# >>> expected
# Array de NumPy:
# [[1. 2. 3.]
#  [4. 5. 6.]
#  [7. 8. 9.]]

# %% [102]
tensor = torch.from_numpy(array)
print(f'Tensor de PyTorch: \n{tensor}')
# >>> expected
# Tensor de PyTorch:
# tensor([[1., 2., 3.],
#         [4., 5., 6.],
#         [7., 8., 9.]], dtype=torch.float64)

# %% [103]
print(f"Array's datatype: {array.dtype}")
print(f"Tensor's datatype: {tensor.dtype}")
# >>> expected
# Array's datatype: float64
# Tensor's datatype: torch.float64

# %% [104]
tensor = tensor.type(torch.float32)
print(f"Tensor's datatype: {tensor.dtype}")
# >>> expected
# Tensor's datatype: torch.float32
