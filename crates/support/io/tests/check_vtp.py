"""Reads a .vtp or .pvtp file with VTK's own reader and prints what it found as one JSON object.

Usage: check_vtp.py FILE

Needs the packages vtk and numpy. Exits with 1 when VTK reports an error.
"""

import json
import sys

import vtk
from vtk.util.numpy_support import vtk_to_numpy


def values(array):
    flat = vtk_to_numpy(array)
    return {"type": flat.dtype.str, "shape": flat.shape, "values": flat.ravel().tolist()}


def arrays(attributes):
    return {
        attributes.GetArrayName(index): values(attributes.GetArray(index))
        for index in range(attributes.GetNumberOfArrays())
    }


def name(array):
    return None if array is None else array.GetName()


def main():
    errors = []
    joined = sys.argv[1].endswith(".pvtp")
    reader = vtk.vtkXMLPPolyDataReader() if joined else vtk.vtkXMLPolyDataReader()
    reader.AddObserver("ErrorEvent", lambda *_: errors.append("VTK reports an error"))
    reader.SetFileName(sys.argv[1])
    reader.Update()
    output = reader.GetOutput()
    vertices = output.GetVerts()
    found = {
        "points": values(output.GetPoints().GetData()),
        "vertices": vtk_to_numpy(vertices.GetConnectivityArray()).tolist(),
        "offsets": vtk_to_numpy(vertices.GetOffsetsArray()).tolist(),
        "point_data": arrays(output.GetPointData()),
        "field_data": arrays(output.GetFieldData()),
        "scalars": name(output.GetPointData().GetScalars()),
        "vectors": name(output.GetPointData().GetVectors()),
        "times": list(
            reader.GetOutputInformation(0).Get(vtk.vtkStreamingDemandDrivenPipeline.TIME_STEPS())
            or []
        ),
    }
    print(json.dumps(found))
    if errors:
        sys.exit(errors[0])


main()
