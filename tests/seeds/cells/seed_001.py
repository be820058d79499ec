# Seed 001: Tensores en Pytorch (Diego Andrade Canosa, Roberto López Castro)
# The code of the slides, each piece with the text that the slide shows beside it.
# Written for tests/seeds/notebook.py, whose docstring explains the marks.
#
# The slides reached us through optical character recognition, in pieces. Mended here, and nothing
# else: `np_array(data)` is `np.array(data)`; the line numbers and the `>>>` prompts are gone;
# `requires grad` has its underscore; conv2d's `f.h, f.w` are `f_h, f_w`, its loops have their
# indentation and its result the allocation that fell off the slide. Where a slide uses names that it
# does not define, a `setup` cell gives them; the tensors a and b are those that the slides print.
# The slides print with two digits.

# %% setup
import threading
import numpy as np
import torch
torch.set_printoptions(precision=2)

# %% [directly from data]
data = [[1, 2],[3, 4]]
x_data = torch.tensor(data)

# %% [from a NumPy array]
np_array = np.array(data)
x_np = torch.from_numpy(np_array)

# %% [what it prints]
x_np
# >>> expected
# tensor([[1, 2],
#         [3, 4]])

# %% [from another tensor's shape]
x_ones = torch.ones_like(x_data)
x_rand = torch.rand_like(x_data,dtype=torch.float)

# %% [what they hold]
x_ones, x_rand.shape, x_rand.dtype
# >>> expected
# (tensor([[1, 1],
#          [1, 1]]),
#  torch.Size([2, 2]),
#  torch.float32)

# %% [given values, or random ones]
shape = (2,3,)
rand_tensor = torch.rand(shape)
ones_tensor = torch.ones(shape)
zeros_tensor = torch.zeros(shape)

# %% [attributes]
tensor = torch.rand(3,4)

print(f"Shape of tensor: {tensor.shape}")
print(f"Datatype of tensor: {tensor.dtype}")
print(f"Device tensor is stored on: {tensor.device}")
# >>> expected
# Shape of tensor: torch.Size([3, 4])
# Datatype of tensor: torch.float32
# Device tensor is stored on: cpu

# %% setup
a = torch.tensor([[[0.43, 0.56, 0.42, 0.77],
                   [0.55, 0.60, 0.97, 0.73],
                   [0.68, 0.77, 0.25, 0.67],
                   [0.41, 0.25, 0.57, 0.81]],
                  [[0.57, 0.19, 0.58, 0.48],
                   [0.12, 0.35, 0.02, 0.94],
                   [0.09, 0.28, 0.69, 0.35],
                   [0.04, 0.83, 0.40, 0.46]]])

# %% [slicing: a]
a
# >>> expected
# tensor([[[0.43, 0.56, 0.42, 0.77],
#          [0.55, 0.60, 0.97, 0.73],
#          [0.68, 0.77, 0.25, 0.67],
#          [0.41, 0.25, 0.57, 0.81]],
#
#         [[0.57, 0.19, 0.58, 0.48],
#          [0.12, 0.35, 0.02, 0.94],
#          [0.09, 0.28, 0.69, 0.35],
#          [0.04, 0.83, 0.40, 0.46]]])

# %% [slicing: a[1]]
a[1]
# >>> expected
# tensor([[0.57, 0.19, 0.58, 0.48],
#         [0.12, 0.35, 0.02, 0.94],
#         [0.09, 0.28, 0.69, 0.35],
#         [0.04, 0.83, 0.40, 0.46]])

# %% [slicing: rows of a[1]]
a[1,2:3]
# >>> expected
# tensor([[0.09, 0.28, 0.69, 0.35]])

# %% [reshape]
a.reshape(8,4)
# >>> expected
# tensor([[0.43, 0.56, 0.42, 0.77],
#         [0.55, 0.60, 0.97, 0.73],
#         [0.68, 0.77, 0.25, 0.67],
#         [0.41, 0.25, 0.57, 0.81],
#         [0.57, 0.19, 0.58, 0.48],
#         [0.12, 0.35, 0.02, 0.94],
#         [0.09, 0.28, 0.69, 0.35],
#         [0.04, 0.83, 0.40, 0.46]])

# %% setup
# The slide shows the result; the tensor that it transposes was a picture.
a = torch.tensor([[0.53, 0.98, 0.10, 0.76], [0.90, 0.90, 0.63, 0.89],
                  [0.64, 0.31, 0.21, 0.31], [0.77, 0.81, 0.83, 0.42],
                  [0.94, 0.87, 0.70, 0.36], [0.53, 0.62, 0.47, 0.75],
                  [0.04, 0.52, 0.49, 0.38], [0.88, 0.41, 0.26, 0.11]])

# %% [transpose]
a.transpose(0,1)
# >>> expected
# tensor([[0.53, 0.90, 0.64, 0.77, 0.94, 0.53, 0.04, 0.88],
#         [0.98, 0.90, 0.31, 0.81, 0.87, 0.62, 0.52, 0.41],
#         [0.10, 0.63, 0.21, 0.83, 0.70, 0.47, 0.49, 0.26],
#         [0.76, 0.89, 0.31, 0.42, 0.36, 0.75, 0.38, 0.11]])

# %% setup
a = torch.tensor([[0.60, 0.61], [0.95, 1.00]])
b = torch.tensor([[0.98, 0.25], [0.78, 0.80]])

# %% [vstack]
torch.vstack((a,b))
# >>> expected
# tensor([[0.60, 0.61],
#         [0.95, 1.00],
#         [0.98, 0.25],
#         [0.78, 0.80]])

# %% [vstack by another name]
torch.concatenate((a,b),dim=0)
# >>> expected
# tensor([[0.60, 0.61],
#         [0.95, 1.00],
#         [0.98, 0.25],
#         [0.78, 0.80]])

# %% setup
a = torch.tensor([[0.93, 0.79], [0.79, 0.55]])
b = torch.tensor([[0.12, 0.30], [0.59, 0.98]])

# %% [hstack]
torch.hstack((a,b))
# >>> expected
# tensor([[0.93, 0.79, 0.12, 0.30],
#         [0.79, 0.55, 0.59, 0.98]])

# %% [hstack by another name]
torch.concatenate((a,b),dim=1)
# >>> expected
# tensor([[0.93, 0.79, 0.12, 0.30],
#         [0.79, 0.55, 0.59, 0.98]])

# %% [unsqueeze and argwhere, whose examples were pictures]
torch.unsqueeze(a,0).shape, torch.unsqueeze(a,2).shape, torch.argwhere(a > 0.7)
# >>> expected
# (torch.Size([1, 2, 2]),
#  torch.Size([2, 2, 1]),
#  tensor([[0, 0],
#          [0, 1],
#          [1, 0]]))

# %% [chunk of 11]
torch.arange(11).chunk(6)
# >>> expected
# (tensor([0, 1]),
#  tensor([2, 3]),
#  tensor([4, 5]),
#  tensor([6, 7]),
#  tensor([8, 9]),
#  tensor([10]))

# %% [chunk of 12]
torch.arange(12).chunk(6)
# >>> expected
# (tensor([0, 1]),
#  tensor([2, 3]),
#  tensor([4, 5]),
#  tensor([6, 7]),
#  tensor([8, 9]),
#  tensor([10, 11]))

# %% [chunk of 13]
torch.arange(13).chunk(6)
# >>> expected
# (tensor([0, 1, 2]),
#  tensor([3, 4, 5]),
#  tensor([6, 7, 8]),
#  tensor([ 9, 10, 11]),
#  tensor([12]))

# %% [split, whose example was a picture]
a = torch.arange(12).reshape(2, 6)
torch.split(a,2,dim=1)
# >>> expected
# (tensor([[0, 1],
#          [6, 7]]),
#  tensor([[2, 3],
#          [8, 9]]),
#  tensor([[ 4,  5],
#          [10, 11]]))

# %% [operations]
a = torch.tensor([[1., 2.], [3., 4.]])
b = torch.tensor([[1., 0.], [0., 2.]])
print(torch.matmul(a, b))
print(torch.mul(a, b), a * b)
print(a.sum())
print(a.add_(b), a.mul_(b), a.copy_(b))
# >>> expected
# tensor([[1., 4.],
#         [3., 8.]])
# tensor([[1., 0.],
#         [0., 8.]]) tensor([[1., 0.],
#         [0., 8.]])
# tensor(10.)
# tensor([[1., 0.],
#         [0., 2.]]) tensor([[1., 0.],
#         [0., 2.]]) tensor([[1., 0.],
#         [0., 2.]])

# %% [split into batches]
# Si `image_batch` es un tensor con la forma (100, 3, 64, 64)
image_batch = torch.rand(100, 3, 64, 64)

# Podemos dividirlo en batches más pequeños (por ejemplo de 10)
small_batches = image_batch.split(10) # Ahora cada batch tiene la forma (10, 3, 64, 64)

# %% [the batches]
len(small_batches), small_batches[0].shape
# >>> expected
# (10, torch.Size([10, 3, 64, 64]))

# %% setup
data = torch.tensor([[1., 0., 0.], [0., 1., 0.], [0., 0., 1.], [1., 0., 0.]])
labels = torch.tensor([0, 1, 2, 1])
def model(data): return 2 * data - 1

# %% [max]
# Asume que el `model` ya está entrenado
# `data` son los datos de prueba
# y `labels` son las etiquetas correctas

# Haz predicciones
outputs = model(data)
# Calcula la probabilidad máxima y su posición
_, predicted = torch.max(outputs, 1)

# Calcula la predicción
correct = (predicted == labels).sum().item()
total = labels.size(0)
accuracy = correct / total

print('Precisión del modelo sobre las imágenes de prueba: %d %%' % (100 * accuracy))
# >>> expected
# Precisión del modelo sobre las imágenes de prueba: 75 %

# %% [arithmetic]
# `output` contiene las predicciones
# `target` contiene la ground-truth
output = torch.tensor([1.5, 2.5, 3.5, 4.5])
target = torch.tensor([2.0, 2.0, 4.0, 3.0])

# Calcula la métrica MAE
mae = (output - target).abs().mean().item()

print(f'Mean Absolute Error: {mae:.2f}')
# >>> expected
# Mean Absolute Error: 0.75

# %% [a layer]
def conv2d(input, filter):
    # Extrae las dimensiones de la entrada
    h, w = input.shape[-2:] # Asume shape (batch, channels, height, width)
    f_h, f_w = filter.shape[-2:] # Asume filter shape (out_channels, in_channels, filter_height, filter_width)

    # Computa las dimensiones de la salida
    out_h = h - f_h + 1
    out_w = w - f_w + 1
    output = torch.zeros(input.shape[0], filter.shape[0], out_h, out_w)

    # Operación de convolución
    for i in range(out_h):
        for j in range(out_w):
            # Selecciona la región de la entrada a la que se aplicará el filtro en esta iteración
            input_region = input[:, :, i:(i + f_h), j:(j + f_w)]
            # La función einsum hace el dot product entre el filtro
            # y la región correspondiente de la entrada
            output[:, :, i, j] = torch.einsum('bchw, ochw -> bo', input_region, filter)

    return output

# %% [the layer at work]
image = torch.arange(2 * 3 * 5 * 5.).reshape(2, 3, 5, 5)
weight = torch.arange(4 * 3 * 2 * 2.).reshape(4, 3, 2, 2)
ours = conv2d(image, weight)
print(ours.shape, torch.equal(ours, torch.nn.functional.conv2d(image, weight)))
ours[0, 0, 0]
# >>> expected
# torch.Size([2, 4, 4, 4]) True
# tensor([2681., 2747., 2813., 2879.])

# %% [autograd in several threads]
# Define a train function to be used in different threads
def train_fn():
    x = torch.ones(5, 5, requires_grad=True)
    # forward
    y = (x + 3) * (x + 4) * 0.5
    # backward
    y.sum().backward()
    # potential optimizer update


# User write their own threading code to drive the train_fn
threads = []
for _ in range(10):
    p = threading.Thread(target=train_fn, args=())
    p.start()
    threads.append(p)

for p in threads:
    p.join()

# %% [autograd in several threads, into one gradient]
x = torch.ones(5, 5, requires_grad=True)
def train_shared():
    ((x + 3) * (x + 4) * 0.5).sum().backward()
threads = [threading.Thread(target=train_shared) for _ in range(10)]
for p in threads: p.start()
for p in threads: p.join()
x.grad[0]
# >>> expected
# tensor([45., 45., 45., 45., 45.])

# %% [the graph a second time] raises=RuntimeError
x = torch.ones(2, requires_grad=True)
y = (x * x).sum()
y.backward()
y.backward()

# %% [the graph a second time, kept]
x = torch.ones(2, requires_grad=True)
y = (x * x).sum()
y.backward(retain_graph=True)
y.backward()
x.grad
# >>> expected
# tensor([4., 4.])

# %% [memory formats]
image = torch.rand(2, 3, 4, 5)
print(image.to(memory_format=torch.channels_last).stride())
print(image.to(memory_format=torch.contiguous_format).stride())
# >>> expected
# (60, 1, 15, 3)
# (60, 20, 5, 1)

# %% [memory formats, as the slide spells them] raises=AttributeError hint=channels_last
image.to(memory_format=torch.channel_last)

# %% [matmul in place, which the slide names] raises=AttributeError hint=matmul
image.matmul_(image)

# %% [gradients off]
layer = torch.nn.Linear(2, 2)
layer.requires_grad_(False)
print([p.requires_grad for p in layer.parameters()], torch.ones(1).requires_grad_(True).requires_grad)
# >>> expected
# [False, False] True

# %% [gradients off, as the slide spells it] raises=AttributeError hint=requires_grad_
layer.requires_grad(False)

# %% [modes]
x = torch.ones(2, requires_grad=True)
with torch.no_grad():
    y = x * 2
with torch.inference_mode():
    z = x * 2
layer.eval()
y.requires_grad, z.requires_grad, z.is_inference(), layer.training
# >>> expected
# (False, False, True, False)

# %% [profiling: the slide's columns are those of PyTorch 1] contains
x = torch.randn((1, 1), requires_grad=True)
with torch.autograd.profiler.profile() as prof:
    for _ in range(100):  # any normal python code, really!
        y = x ** 2
        y.backward()
# NOTE: some columns were removed for brevity
print(prof.key_averages().table(sort_by="self_cpu_time_total"))
# >>> expected
# Name
# Self CPU
# CPU total
# CPU time avg
# # of Calls
# PowBackward0
# torch::autograd::AccumulateGrad
