#!/bin/bash
# A process that behaves as Chromium does towards its parent and weighs 4 MiB: NUL-terminated CDP on descriptors 3 and 4,
# ends with its pipe. One blank page; sessions are numbered. For benches that need a hundred browsers and no pages.
page='{"targetId":"P1","type":"page","title":"","url":"about:blank","attached":false,"browserContextId":"C1"}'
sessions=0
for argument; do
  [[ $argument == --user-data-dir=* ]] && mkdir -p "${argument#*=}/Default"
  [[ $argument == --proxy-server=* ]] && proxy=${argument##*:}
done

# What the proxy of the switches answers for a URL, as a resource that was loaded through it.
load() {
  local line status denied=""
  exec 5<>"/dev/tcp/127.0.0.1/$proxy"
  printf 'GET %s HTTP/1.1\r\nHost: proxied\r\nConnection: close\r\n\r\n' "$1" >&5
  read -r _ status _ <&5
  while IFS= read -r line <&5 && [[ $line != $'\r' ]]; do
    [[ ${line,,} == x-remuda-egress:* ]] && denied=${line#*: } && denied=${denied%$'\r'}
  done
  exec 5>&-
  result="{\"resource\":{\"success\":false,\"httpStatusCode\":$status,\"headers\":{\"X-Remuda-Egress\":\"$denied\"}}}"
}

tell() { printf '%s\0' "$1" >&4; }

while IFS= read -r -d '' -u 3 message; do
  [[ $message =~ \"id\":([0-9]+) ]] && id=${BASH_REMATCH[1]}
  [[ $message =~ \"method\":\"([A-Za-z.]+)\" ]] && method=${BASH_REMATCH[1]}
  # The session a message is meant for stands last; one inside `params` is followed by another brace.
  tail=""
  [[ $message =~ ,\"sessionId\":\"([^\"]+)\"\}$ ]] && tail=",\"sessionId\":\"${BASH_REMATCH[1]}\""
  # Holds what any of the other commands is asked for.
  result='{"cookies":[],"extensions":[],"windowId":1,"bounds":{}}'
  case $method in
    Browser.getVersion) result='{"protocolVersion":"1.3","product":"Chrome/0.0.0.0","revision":"@0","userAgent":"Light","jsVersion":"0"}' ;;
    Target.getTargets) result="{\"targetInfos\":[$page]}" ;;
    Emulation.getScreenInfos) result='{"screenInfos":[]}' ;;
    Target.getBrowserContexts) result='{"browserContextIds":[],"defaultBrowserContextId":"C1"}' ;;
    Target.attachToTarget | Target.attachToBrowserTarget) result="{\"sessionId\":\"S$((sessions += 1))\"}" ;;
    Network.loadNetworkResource) [[ $message =~ \"url\":\"([^\"]+)\" ]] && load "${BASH_REMATCH[1]}" ;;
    Browser.close) exit 0 ;;
  esac
  tell "{\"id\":$id,\"result\":$result$tail}"
  if [[ $method == Target.setDiscoverTargets ]]; then
    tell "{\"method\":\"Target.targetCreated\",\"params\":{\"targetInfo\":$page}$tail}"
  fi
done
