# Sandgate in a container. See docs/containers.md for what the cage loses in one, and how to get it back.
#
#   docker build -t sandgate .
#   docker run --rm -it -v "$PWD:/work" sandgate sandbox --status

FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN cargo build --release --locked --package sandgate

FROM debian:bookworm-slim
# What agents need most, and certificates for the model's service.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 agent
COPY --from=build /source/target/release/sandgate /usr/local/bin/sandgate
USER agent
WORKDIR /work
ENTRYPOINT ["sandgate"]
CMD ["--help"]
