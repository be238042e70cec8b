# The image: see docs/image.md. A release names the base by its digest:
#   docker build --build-arg BASE=node:24-trixie-slim@sha256:… --build-arg VERSION=… --build-arg REVISION=… .
ARG BASE=node:24-trixie-slim

FROM ${BASE} AS build
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-fund --no-audit
COPY LICENSE README.md CONTRIBUTING.md config.example.yaml ./
COPY deploy ./deploy
COPY docs ./docs
COPY packaging ./packaging
COPY src ./src
# All that `npm ci --omit=dev --omit=optional` would bring is in the bundle, or beside it where it cannot be in it.
RUN node packaging/application.ts /app

FROM ${BASE}
# git, openssh-client: for modules from git. ca-certificates: the public roots that clients get together with our own.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates git openssh-client \
 && rm -rf /var/lib/apt/lists/* \
 && echo 'terramirror:x:65532:0:Terramirror:/data:/usr/sbin/nologin' >> /etc/passwd \
 && install --directory --owner=65532 --group=0 --mode=0775 /data
COPY packaging/files/image-config.yaml /etc/terramirror/config.yaml
COPY --from=build /app /app

ARG VERSION=0.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Terramirror" \
      org.opencontainers.image.description="A caching pull-through mirror for Terraform and OpenTofu that verifies everything it serves" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV NODE_ENV=production
# Any other user works too, if its group is 0: the data folder is open to that group.
USER 65532:0
WORKDIR /etc/terramirror
VOLUME ["/data"]
EXPOSE 8443
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
  CMD ["node", "/app/dist/terramirror.js", "healthcheck"]
ENTRYPOINT ["node", "--max-semi-space-size=2", "/app/dist/terramirror.js"]
CMD ["serve"]
