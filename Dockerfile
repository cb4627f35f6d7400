# Node.js 26 is the active LTS line since 2026-10-28; its images stand on Debian 13.
ARG BASE=node:26-trixie-slim

FROM ${BASE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --include=dev --no-audit --no-fund
COPY tsconfig.json ./
COPY scripts scripts
COPY src src
RUN node scripts/bootstrap.mjs build && npm prune --omit=dev --no-audit --no-fund

FROM ${BASE}
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        chromium chromium-headless-shell redis-server xvfb bubblewrap util-linux tini \
        fonts-liberation fonts-noto-cjk fonts-noto-color-emoji \
    && apt-get clean && rm -rf /var/lib/apt/lists/* \
    && install -d -o node -g node -m 0700 /data
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json LICENSE ./
COPY config config
ENV NODE_ENV=production REMUDA_HOST=0.0.0.0 REMUDA_DATA_DIR=/data
VOLUME /data
EXPOSE 4700 4701
# Not root: private roots, network namespaces and Chromium's sandbox come by user namespaces, which the container's seccomp
# profile has to allow (k8s/seccomp.json). As root the daemon would besides give each browser a uid of its own, which takes
# CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID, CAP_SETPCAP, CAP_CHOWN and CAP_KILL.
USER node
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
    CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.REMUDA_PORT || 4700}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# tini reaps what Chromium's helpers leave to process 1.
ENTRYPOINT ["/usr/bin/tini", "--"]
CMD ["node", "--enable-source-maps", "dist/src/main.js"]
