"""The neighbour searches of other libraries, done by Nearfield.

A module for each library has its functions and classes under their own names, with their
signatures, their results and their errors:

>>> from nearfield.compat.ase import neighbor_list                   # for ase.neighborlist
>>> from nearfield.compat.matscipy import neighbour_list             # for matscipy.neighbours
>>> from nearfield.compat.vesin import NeighborList                  # for vesin
>>> from nearfield.compat.torch_cluster import radius_graph          # for torch_cluster
>>> from nearfield.compat.scipy import KDTree                        # for scipy.spatial
>>> from nearfield.compat.freud import AABBQuery                     # for freud.locality
>>> from nearfield.compat.mdanalysis import capped_distance          # for MDAnalysis.lib.distances

Each says in its docstring what differs. ``matscipy``, ``vesin`` and ``scipy`` (without sparse
matrices) need NumPy only, ``torch_cluster`` needs PyTorch, the others their library.
"""
