from antorcha.devices.emit import Unsupported
def plan_attention(*a): raise Unsupported("x")
