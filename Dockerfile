# The README's steps in a container: pip install ".[serve]", then any verb of “dragoman”.
#   docker build --tag dragoman .
#   docker run --rm --volume "$PWD:/models" dragoman train --source my.de --target my.en --out my-model
# No engine was at hand where this was written: it has not been run.
FROM python:3.11-slim
COPY pyproject.toml constraints.txt README.md LICENSE /source/
COPY src /source/src
RUN pip install --no-cache-dir --constraint /source/constraints.txt "/source[serve]" && rm -r /source
# Compiled functions are cached in a folder that must belong to the user alone.
RUN useradd --create-home dragoman && install -d -o dragoman -m 700 /home/dragoman/.cache
USER dragoman
WORKDIR /models
EXPOSE 5000
ENTRYPOINT ["dragoman"]
CMD ["--help"]
