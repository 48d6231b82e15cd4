"""move-sources.py MODEL NEW FOLDER: copies a .pt2 file, and changes the paths of sources in it, so that the user's code
and a Python environment with PyTorch are in FOLDER."""
import sys
import zipfile

model, new, folder = sys.argv[1:]
with zipfile.ZipFile(model) as source, zipfile.ZipFile(new, "w") as copy:
    for name in source.namelist():
        data = source.read(name)
        if name.endswith("models/model.json"):
            data = data.replace(b'File \\"torch/', f'File \\"{folder}/lib/site-packages/torch/'.encode())
            data = data.replace(b'File \\"multi_head', f'File \\"{folder}/multi_head'.encode())
        copy.writestr(name, data)
