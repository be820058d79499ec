"""Parts of PyTorch that antorcha lacks as a whole, e.g. ``torch.distributed.fsdp``.

Libraries import their names on the first screen and use them only where the program asks for it: in
annotations, in ``isinstance(model, FullyShardedDataParallel)``, as a base class. So these modules
can be imported, and hold for each of PyTorch's names a *placeholder*: a class without instances.
Whoever calls it gets a NotImplementedError that names it and says what to do instead.

The names are PyTorch's public ones (``pytorch_names.txt``) and the private ones that libraries
import, `PRIVATE`. A part of which something is there is an ordinary module (``antorcha.onnx``) that
hands the rest on: ``__getattr__ = absent.names("torch.onnx")``.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Final

from antorcha.errors import PACKAGE, MissingFeature, MissingModules, no_such_name, pytorch_names

_INTERIOR = "there is no C++ below these functions; use the public ones"
REASONS: Final = {
    "torch._C": _INTERIOR,
    "torch.classes": "there are no classes of C++ here",
    "torch.distributed": "a program runs in one process on one device here "
                         "(torch.distributed.is_available() is False); leave it out",
    "torch.export": "there is no export of graphs; run the module itself",
    "torch.onnx": "there is no export to ONNX; torch.save keeps the state_dict",
    "torch.ao": "there is no quantization; run the module itself",
    "torch.quantization": "there is no quantization; run the module itself",
    "torch.package": "models are kept by torch.save(model.state_dict(), file)",
    "torch.utils.cpp_extension": "nothing is built from C++ here; write the op in Python, with "
                                 "antorcha.kernel",
    "torch.utils.data.datapipes": "use torch.utils.data.Dataset and DataLoader",
    "torch.utils.data.graph": "use torch.utils.data.Dataset and DataLoader",
    "torch.utils.data.graph_settings": "use torch.utils.data.Dataset and DataLoader",
    "torch._inductor": "kernels are compiled by antorcha itself; leave it out",
    "torch._subclasses": "graphs are traced without tensors that have no elements",
    "torch._export": "there is no export of graphs; run the module itself",
    "torch._higher_order_ops": "use a Python loop or condition",
    "torch.fx.experimental.symbolic_shapes": "sizes are plain ints here",
    "torch.fx.experimental.proxy_tensor": "there is no graph of aten ops; use torch.fx",
    "torch.utils._sympy": "sizes are plain ints here",
    "torch.numa": "threads are not bound to memory nodes; use numactl",
}  # fmt: skip
"""The parts that are absent, and what to do without them."""

_QUANTIZED = "there are no quantized tensors; keep numbers in int8 or float16 yourself"
_TORCHSCRIPT = "TorchScript's classes are none of antorcha's; run the module itself"
_OF_LIBRARY = "kernels are antorcha's own; call the function of torch without the library's name"
_OF_GPU = "a part of batch_norm on a GPU; call torch.nn.functional.batch_norm"
NAMES: Final = {
    name: why
    for why, names in {
        _QUANTIZED: "QInt8Storage QInt32Storage QUInt2x4Storage QUInt4x2Storage QUInt8Storage "
                    "choose_qparams_optimized empty_quantized "
                    "fake_quantize_per_channel_affine fake_quantize_per_tensor_affine "
                    "fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation "
                    "fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation "
                    "fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 "
                    "fbgemm_pack_quantized_matrix fused_moving_avg_obs_fake_quant int_repr "
                    "q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale "
                    "q_zero_point quantize_per_channel quantize_per_tensor "
                    "quantize_per_tensor_dynamic quantized_batch_norm quantized_gru "
                    "quantized_gru_cell quantized_lstm quantized_lstm_cell quantized_max_pool1d "
                    "quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell "
                    "quantized_rnn_tanh_cell",
        _TORCHSCRIPT: "AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType Block "
                      "BoolType BufferDict CallStack Capsule ClassType Code CompilationUnit "
                      "CompleteArgumentSpec ComplexType ConcreteModuleType "
                      "ConcreteModuleTypeBuilder DeepCopyMemoTable DeserializationStorageContext "
                      "DeviceObjType DictType EnumType ErrorReport ExecutionPlan FileCheck "
                      "FloatType FunctionSchema Future FutureType Gradient Graph "
                      "GraphExecutorState IODescriptor InferredType IntType InterfaceType "
                      "JITException ListType LiteScriptModule LockingLogger LoggerBase ModuleDict "
                      "Node NoneType NoopLogger NumberType OperatorInfo OptionalType ParameterDict "
                      "PyObjectType PyTorchFileReader PyTorchFileWriter RRefType ScriptClass "
                      "ScriptClassFunction ScriptDict ScriptDictIterator ScriptDictKeyIterator "
                      "ScriptList ScriptListIterator ScriptMethod ScriptModuleSerializer "
                      "ScriptObject ScriptObjectProperty SerializationStorageContext StaticModule "
                      "StreamObjType StringType SymBoolType SymIntType TensorType TracingState "
                      "TupleType Type UnionType Use Value import_ir_module "
                      "import_ir_module_from_buffer merge_type_from_type_comment parse_ir "
                      "parse_schema parse_type_comment unify_type_list",
        _OF_LIBRARY: "cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution "
                     "cudnn_convolution_add_relu cudnn_convolution_relu "
                     "cudnn_convolution_transpose cudnn_grid_sampler miopen_batch_norm "
                     "miopen_convolution miopen_convolution_add_relu miopen_convolution_relu "
                     "miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution "
                     "miopen_rnn mkldnn_adaptive_avg_pool2d mkldnn_convolution "
                     "mkldnn_linear_backward_weights mkldnn_max_pool2d mkldnn_max_pool3d "
                     "mkldnn_rnn_layer native_norm",
        _INTERIOR: "BenchmarkConfig BenchmarkExecutionStats DispatchKey DispatchKeySet "
                   "ExcludeDispatchKeyGuard FatalError StorageBase Tag ThroughputBenchmark",
        _OF_GPU: "batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt "
                 "batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats "
                 "batch_norm_update_stats",
    }.items()
    for name in names.split()
}  # fmt: skip
"""The absent names of ``torch`` itself, and what to do without them."""

PRIVATE: Final = {
    "torch._C": "Block Graph Node PyTorchFileReader PyTorchFileWriter "
                "ScriptObject Value _IncludeDispatchKeyGuard "
                "_disabled_torch_dispatch_impl",
    "torch._C._functorch": "_add_batch_dim _remove_batch_dim",
    "torch._subclasses.fake_tensor": "FakeTensor FakeTensorMode",
    "torch._C._distributed_c10d": "ProcessGroup Reducer",
    "torch._C._distributed_rpc": "_is_current_rpc_agent_set",
    "torch.distributed": "FileStore",
    "torch.distributed._composable": "",
    "torch.distributed._composable.fsdp": "FSDPModule fully_shard MixedPrecisionPolicy "
                                          "CPUOffloadPolicy OffloadPolicy",
    "torch.distributed._functional_collectives":
        "AsyncCollectiveTensor all_gather_tensor all_reduce all_to_all_single "
        "all_to_all_single_autograd permute_tensor wait_tensor",
    "torch.distributed._tensor": "DTensor DeviceMesh Partial Placement Replicate Shard "
                                 "distribute_tensor init_device_mesh",
    "torch.distributed._tensor.experimental": "implicit_replication",
    "torch.distributed.algorithms._checkpoint": "",
    "torch.distributed.algorithms._checkpoint.checkpoint_wrapper":
        "CheckpointImpl CheckpointWrapper OffloadWrapper apply_activation_checkpointing "
        "checkpoint_wrapper offload_wrapper",
    "torch.distributed.checkpoint._consolidate_hf_safetensors": "consolidate_safetensors_files",
    "torch.distributed.checkpoint.format_utils": "_EmptyStateDictLoadPlanner _load_state_dict",
    "torch.distributed.checkpoint.state_dict_loader": "_load_state_dict",
    "torch.distributed.distributed_c10d": "_get_default_group _pg_map",
    "torch.distributed.fsdp.fully_sharded_data_parallel":
        "BackwardPrefetch CPUOffload FullOptimStateDictConfig FullStateDictConfig "
        "LocalStateDictConfig MixedPrecision ShardedOptimStateDictConfig ShardedStateDictConfig "
        "ShardingStrategy StateDictType",
    "torch.distributed.fsdp.wrap": "_or_policy _module_wrap_policy",
    "torch.distributed.launcher.api": "LaunchConfig elastic_launch",
    "torch.distributed.rpc.api": "_all_gather _require_initialized",
    "torch.distributed.run": "get_args_parser main run",
    "torch.distributed.tensor._utils": "compute_local_shape_and_global_offset",
    "torch.distributed.tensor.experimental._attention": "set_rotate_method",
    "torch.distributed.tensor.placement_types": "_StridedShard",
    "torch.distributed.utils": "_sync_module_states",
    "torch.onnx": "OperatorExportTypes TensorProtoDataType TrainingMode dynamo_export",
    "torch.onnx._internal": "exporter",
    "torch.onnx.symbolic_helper": "cast_pytorch_to_onnx",
    "torch.onnx.symbolic_opset9": "masked_fill softmax",
    "torch.onnx.symbolic_opset11": "select squeeze unsqueeze",
    "torch.onnx.symbolic_opset12": "dropout",
    "torch._inductor": "cudagraph_mark_step_begin list_mode_options list_options",
    "torch._inductor.cpu_vec_isa": "pick_vec_isa",
    "torch._inductor.runtime": "",
    "torch._inductor.runtime.cache_dir_utils": "cache_dir",
    "torch._higher_order_ops": "associative_scan cond flex_attention scan while_loop",
    "torch._higher_order_ops.associative_scan": "associative_scan",
    "torch._export": "",
    "torch.export": "_trace",
    "torch.ao.quantization.fx": "_decomposed",
    "torch.utils._sympy": "",
    "torch.utils._sympy.numbers": "IntInfinity",
    "torch.utils._sympy.value_ranges": "ValueRanges",
}  # fmt: skip
"""Private modules and names of those parts that libraries import."""

DECORATORS: Final = frozenset({"torch.distributed.rpc.api._require_initialized"})
"""Absent names that libraries decorate functions with while they are imported: such a function is
absent, too."""


class Placeholder(type):
    """The type of what stands for an absent name. Its attributes, such as the members of an
    enumeration that a default argument names, are placeholders, too."""

    _name: str

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls._name in DECORATORS:
            return placeholder(f"{cls._name}.{args[0].__name__}")
        raise MissingFeature(
            f"{cls._name}: PyTorch 2.13 has it, antorcha does not: {reason(cls._name)}."
        )

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{cls._name} has no attribute {name!r}", name=name)
        result = placeholder(f"{cls._name}.{name}")
        setattr(cls, name, result)
        return result

    def __repr__(cls) -> str:
        return f"<absent {cls._name}>"


def placeholder(name: str) -> Any:
    """What stands for the absent `name`, such as ``"torch.distributed.fsdp.ShardingStrategy"``."""
    module, _, short = name.rpartition(".")
    doc = f"Not in antorcha: {reason(name)}."
    return Placeholder(short, (), {"__module__": module, "__doc__": doc, "_name": name})


def is_absent(value: object) -> bool:
    """Is it a placeholder, or a module of nothing but placeholders?"""
    return isinstance(value, (Placeholder, _AbsentModule))


def reason(name: str) -> str:
    """What to do without `name`."""
    part = _part_of(name)
    return REASONS[part] if part else NAMES[name.split(".")[1]]


def names(module: str, own: dict[str, Any]) -> Callable[[str], Any]:
    """The ``__getattr__`` of PyTorch's `module`: its absent names, and its modules. `own` is what
    the module has (its ``globals()``)."""

    def __getattr__(name: str) -> Any:  # noqa: N807
        full = f"{module}.{name}"
        if _is_module(full):
            found: Any = importlib.import_module(_ours(full))
        elif name in _known(module):
            part = sys.modules.get(_ours(_part_of(module)))  # (it may have the name itself)
            found = vars(part).get(name) if part is not None else None
            found = placeholder(full) if found is None else found
        else:
            raise no_such_name(module, name, lambda: [*own, *_known(module)])
        own[name] = found
        return found

    return __getattr__


class _AbsentModule(ModuleType):
    """A module of which antorcha has nothing."""


class AbsentModules:
    """Finds ``antorcha.distributed.fsdp`` and the other modules of absent parts.

    A finder and loader by its methods: ``importlib.abc``, which has base classes for them, imports
    a dozen modules more, and this file is imported with antorcha.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """A spec for the modules of absent parts (asked after those that find files)."""
        package, _, rest = fullname.partition(".")
        if package != PACKAGE or not _is_module(f"torch.{rest}"):
            return None
        loader: Any = self
        return importlib.machinery.ModuleSpec(fullname, loader, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """The module, empty."""
        theirs = f"torch{spec.name.removeprefix(PACKAGE)}"
        return _AbsentModule(spec.name, f"``{theirs}``, absent: {reason(theirs)}.")

    def exec_module(self, module: ModuleType) -> None:
        """Makes it hand out placeholders."""
        own = vars(module)
        theirs = f"torch{module.__name__.removeprefix(PACKAGE)}"
        own["__all__"] = sorted(_known(theirs))
        own["__getattr__"] = names(theirs, own)


def install() -> None:
    """Puts the finder before the one that says what is missing."""
    if not any(isinstance(finder, AbsentModules) for finder in sys.meta_path):
        at = sys.meta_path.index(MissingModules) if MissingModules in sys.meta_path else None
        sys.meta_path.insert(len(sys.meta_path) if at is None else at, AbsentModules())


def _ours(module: str) -> str:
    return f"{PACKAGE}{module.removeprefix('torch')}"


def _part_of(name: str) -> str:
    """The absent part that a dotted name belongs to; ``""`` for none."""
    while name and name not in REASONS:
        name = name.rpartition(".")[0]
    return name


def _is_module(name: str) -> bool:
    return bool(_part_of(name)) and (name in pytorch_names() or name in PRIVATE or name in REASONS)


def _known(module: str) -> set[str]:
    """The names of PyTorch's `module` that programs may ask for."""
    return {*pytorch_names().get(module, ()), *PRIVATE.get(module, "").split()}
