"""Writes the same points in many encodings, for the readers to agree on.

Usage: make_files.py DIRECTORY [--samples]

Needs numpy and vtk; meshio's and plyfile's files are added where those packages are there. The
coordinates are short decimals, so that text writers with few digits lose nothing: eighths in the
files named f4_*, tenths (which f32 cannot hold) in those named f8_*. With --samples only the few
files are written that the repository keeps.
"""

import itertools
import pathlib
import sys

import numpy as np
import vtk
from vtk.util.numpy_support import numpy_to_vtk

SAMPLES = {
    "f4_vtk_appended_zlib_64_little_raw.vtp",
    "f8_vtk_binary_none_32_big.vtp",
    "f8_vtk_appended_lz4_32_big_base64.vtu",
    "f4_vtk_ascii.vtu",
    "f4_vtk_appended_lzma_32_little_raw.vtu",
    "f8_vtk_polydata_42_binary.vtk",
    "f4_vtk_grid_51_binary.vtk",
    "f4_vtk_polydata_51_ascii.vtk",
    "f4_vtk_binary_big.ply",
    "f8_meshio_binary.ply",
    "f8_meshio_ascii.ply",
    "f8_meshio_zlib.vtu",
}

POINTS = 5


def positions(kind):
    steps = np.random.default_rng(7).integers(-40, 200, (POINTS, 3)).astype("f8")
    steps[0] = [1, 3, 7]
    return steps / (8 if kind == "f4" else 10)


def named(name, array):
    result = numpy_to_vtk(array, deep=1)
    result.SetName(name)
    return result


def fill(data_set, kind):
    coordinates = positions(kind).astype(kind)
    points = vtk.vtkPoints()
    points.SetDataType(vtk.VTK_FLOAT if kind == "f4" else vtk.VTK_DOUBLE)
    points.SetData(numpy_to_vtk(coordinates, deep=1))
    data_set.SetPoints(points)
    data_set.GetPointData().AddArray(named("velocity", (2 * positions("f4")).astype("f4")))
    data_set.GetPointData().AddArray(named("id number", np.arange(POINTS, dtype="i4")))
    data_set.GetPointData().SetScalars(named("pressure", positions("f4")[:, 0].copy()))
    data_set.GetFieldData().AddArray(named("TimeValue", np.array([1.5])))
    return data_set


def polydata(kind):
    data_set = fill(vtk.vtkPolyData(), kind)
    vertices = vtk.vtkCellArray()
    for point in range(POINTS):
        vertices.InsertNextCell(1, [point])
    data_set.SetVerts(vertices)
    return data_set


def grid(kind):
    data_set = fill(vtk.vtkUnstructuredGrid(), kind)
    for point in range(POINTS):
        data_set.InsertNextCell(vtk.VTK_VERTEX, 1, [point])
    return data_set


def with_odd_attributes():
    """Every attribute of the legacy format that is not kept, before one that is."""
    data_set = polydata("f4")
    data = data_set.GetPointData()
    text = vtk.vtkStringArray()
    text.SetName("a title")
    for line in ["two words", "x" * 100]:
        text.InsertNextValue(line)
    data_set.GetFieldData().AddArray(text)
    bits = vtk.vtkBitArray()
    bits.SetName("bits")
    for point in range(POINTS):
        bits.InsertNextValue(point % 2)
    data.AddArray(bits)
    colors = named("colors", np.arange(3 * POINTS, dtype="u1").reshape(POINTS, 3))
    data.SetScalars(colors)  # takes the place of the pressure
    data.AddArray(named("pressure", positions("f4")[:, 0].copy()))
    data.SetNormals(named("normals", np.ones((POINTS, 3), "f4")))
    data.SetTensors(named("tensors", np.ones((POINTS, 9))))
    coordinates = named("texture", np.ones((POINTS, 2)))
    coordinates.SetComponentName(0, "first one")
    data.SetTCoords(coordinates)
    for name, setter in [("global", data.SetGlobalIds), ("pedigree", data.SetPedigreeIds)]:
        ids = vtk.vtkIdTypeArray()
        ids.SetName(name)
        for point in range(POINTS):
            ids.InsertNextValue(point)
        setter(ids)
    cells = data_set.GetCellData()
    cells.SetScalars(named("per cell", np.arange(POINTS, dtype="f4")))
    return data_set


def legacy_writers():
    kinds = [
        ("polydata", vtk.vtkPolyDataWriter, polydata),
        ("grid", vtk.vtkUnstructuredGridWriter, grid),
    ]
    for kind, (name, writer, make), version in itertools.product(["f4", "f8"], kinds, [42, 51]):
        for encoding in ["ascii", "binary"]:
            w = writer()
            w.SetInputData(make(kind))
            w.SetFileVersion(version)
            w.SetFileType(1 if encoding == "ascii" else 2)
            yield f"{kind}_vtk_{name}_{version}_{encoding}.vtk", w
    for encoding in ["ascii", "binary"]:
        w = vtk.vtkPolyDataWriter()
        w.SetInputData(with_odd_attributes())
        w.SetFileType(1 if encoding == "ascii" else 2)
        yield f"f4_odd_{encoding}.vtk", w


def xml_writer(kind, extension):
    if extension == "vtp":
        writer, data_set = vtk.vtkXMLPolyDataWriter(), polydata(kind)
    else:
        writer, data_set = vtk.vtkXMLUnstructuredGridWriter(), grid(kind)
    writer.SetInputData(data_set)
    writer.SetBlockSize(32)
    return writer


def xml_writers():
    for kind, extension in itertools.product(["f4", "f8"], ["vtp", "vtu"]):
        w = xml_writer(kind, extension)
        w.SetDataModeToAscii()
        yield f"{kind}_vtk_ascii.{extension}", w
        modes = [("binary", ""), ("appended", "_raw"), ("appended", "_base64")]
        compressors = ["none", "zlib", "lz4", "lzma"]
        for (mode, code), compressor, header, order in itertools.product(
            modes, compressors, [32, 64], ["little", "big"]
        ):
            w = xml_writer(kind, extension)
            w.SetDataMode(1 if mode == "binary" else 2)
            w.SetEncodeAppendedData(code == "_base64")
            w.SetCompressorType(compressors.index(compressor))
            w.SetHeaderType(header)
            w.SetByteOrder(1 if order == "little" else 0)
            yield f"{kind}_vtk_{mode}_{compressor}_{header}_{order}{code}.{extension}", w


def ply_writers():
    for encoding, order in [(1, "ascii"), (2, "big"), (2, "little")]:
        w = vtk.vtkPLYWriter()
        w.SetInputData(polydata("f4"))
        w.SetFileType(encoding)
        w.SetDataByteOrder(1 if order == "big" else 0)
        yield f"f4_vtk_{'ascii' if encoding == 1 else 'binary_' + order}.ply", w


def write_with_meshio(directory, wanted):
    import meshio

    for kind in ["f4", "f8"]:
        points = positions(kind).astype(kind)
        mesh = meshio.Mesh(points, [("vertex", [[i] for i in range(POINTS)])])
        faces = meshio.Mesh(points, [("triangle", [[0, 1, 2], [2, 3, 4]])])
        for name, mesh, options in [
            ("none.vtu", mesh, {"compression": None}),
            ("zlib.vtu", mesh, {"compression": "zlib"}),
            ("ascii.vtu", mesh, {"binary": False}),
            ("42_binary.vtk", mesh, {"file_format": "vtk42"}),
            ("51_binary.vtk", mesh, {"file_format": "vtk51"}),
            ("51_ascii.vtk", mesh, {"file_format": "vtk51", "binary": False}),
            ("ascii.ply", faces, {"binary": False}),
            ("binary.ply", faces, {"binary": True}),
        ]:
            if wanted(f"{kind}_meshio_{name}"):
                meshio.write(directory / f"{kind}_meshio_{name}", mesh, **options)


def write_with_plyfile(directory, wanted):
    import plyfile

    before = plyfile.PlyElement.describe(
        np.array([([1, 2, 3],), ([],)], [("list", "O")]),
        "before",
        len_types={"list": "u1"},
        val_types={"list": "f4"},
    )
    for kind, encoding in itertools.product(["f4", "f8"], ["ascii", "little", "big"]):
        fields = [("id", "u2"), ("x", kind), ("y", kind), ("z", kind), ("q", "f8")]
        # plyfile does not swap the bytes of elements that have lists.
        lists = [] if encoding == "big" else [("list", "O")]
        rows = [
            (i, *point, 0.5, *[[i] * i] * len(lists))
            for i, point in enumerate(positions(kind).tolist())
        ]
        vertices = plyfile.PlyElement.describe(
            np.array(rows, fields + lists),
            "vertex",
            len_types={"list": "u2"},
            val_types={"list": "i2"},
        )
        name = f"{kind}_plyfile_{encoding}.ply"
        if wanted(name):
            order = ">" if encoding == "big" else "<"
            data = plyfile.PlyData([before, vertices], encoding == "ascii", order)
            data.write(str(directory / name))


def main():
    directory = pathlib.Path(sys.argv[1])
    only_samples = "--samples" in sys.argv[2:]
    wanted = (lambda name: name in SAMPLES) if only_samples else (lambda name: True)
    for kind in ["f4", "f8"]:
        np.save(directory / f"truth_{kind}.npy", positions(kind).astype(kind))
    for name, writer in itertools.chain(legacy_writers(), xml_writers(), ply_writers()):
        if wanted(name):
            writer.SetFileName(str(directory / name))
            writer.Write()
    for more in [write_with_meshio, write_with_plyfile]:
        try:
            more(directory, wanted)
        except ImportError as missing:
            print(f"left out: {missing}")


main()
