"""The stub file says what the compiled package has: names, parameters, defaults, first paragraphs."""

import ast
import inspect
from pathlib import Path

import nearfield
import pytest
from nearfield import _nearfield

STUB = ast.parse(Path(nearfield.__file__).with_name("_nearfield.pyi").read_text())
FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
# The protocols are for type checkers alone.
CLASSES = {
    node.name: node
    for node in STUB.body
    if isinstance(node, ast.ClassDef) and hasattr(nearfield, node.name)
}
# Functions that Python itself wraps, such as __len__, have no signature of their own.
WRAPPER = type(str.__len__)


def members(node):
    """Functions of a class of the stub by name; the last one where there are several."""
    return {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}


def of_stub(function):
    """Name, kind and default of every parameter but self."""
    arguments = function.args
    empty = inspect.Parameter.empty
    default = lambda given: empty if given is None else ast.literal_eval(given)
    missing = [None] * (len(arguments.args) - len(arguments.defaults))
    found = [
        (argument.arg, "POSITIONAL_OR_KEYWORD", default(given))
        for argument, given in zip(arguments.args, missing + arguments.defaults)
    ]
    if found and found[0][0] in ("self", "cls"):
        del found[0]
    return found + [
        (argument.arg, "KEYWORD_ONLY", default(given))
        for argument, given in zip(arguments.kwonlyargs, arguments.kw_defaults)
    ]


def of_package(function):
    found = inspect.signature(function).parameters.values()
    # A default that is not a literal in Rust is an Ellipsis: an empty sequence.
    return [
        (one.name, one.kind.name, () if one.default is ... else one.default)
        for one in found
        if one.name != "self"
    ]


def public(of):
    return {name for name in vars(of) if not name.startswith("_")}


def first_paragraph(text):
    return " ".join(text.split("\n\n")[0].split())


def test_the_stub_has_every_name():
    assert set(FUNCTIONS) | set(CLASSES) == public(_nearfield)
    written_in_python = {"EdgeList", "Padded", "free_memory", "padded"}
    compiled = set(FUNCTIONS) | set(CLASSES) | {"__version__"}
    assert compiled | written_in_python == set(nearfield.__all__)
    assert all(getattr(nearfield, name).__doc__ for name in written_in_python)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_parameters_of_the_stub(name):
    function = getattr(nearfield, name)
    assert of_stub(FUNCTIONS[name]) == of_package(function)
    assert function.__doc__


@pytest.mark.parametrize("name", CLASSES)
def test_classes_have_the_members_of_the_stub(name):
    found, stub = getattr(nearfield, name), members(CLASSES[name])
    assert public(found) == {name for name in stub if not name.startswith("_")}
    assert first_paragraph(ast.get_docstring(CLASSES[name])) == first_paragraph(found.__doc__)
    if "__new__" in stub:
        assert of_stub(stub.pop("__new__")) == of_package(found)
    for member, function in stub.items():
        there = getattr(found, member)
        if inspect.isgetsetdescriptor(there):
            assert function.decorator_list, f"{member} is a property"
        elif inspect.ismethoddescriptor(there) and not isinstance(there, WRAPPER):
            assert of_stub(function) == of_package(there), member
        assert there.__doc__, member
