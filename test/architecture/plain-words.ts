/**
 * Words that need no line in the glossary, since they mean here what they mean everywhere: in English, or in
 * the standards and programs that are named. Of these and of the glossary's the names of exported types and
 * of files are made (names.test.ts). A word stands for its regular forms too.
 */
const english = `
  absolute access account action add addition address admitted all announce answer ask assembly at
  attach attachments attempt attested available bad bare base bound bounds budget builder builtin by call
  candidate capacities category ceiling chain check choice class classic clear code collect concurrently
  connect contents contradictions copy count counters create creation damaged deadline declared default
  delivery denied depth detail dialogs direct directly discovery display domain done downloads dropped edits encryption
  entitlements environment exceeded exchange exclusive exit facts failure fault find finished
  first foreign forget formats forward free given head hierarchy hold identity in incoming info input
  install installable interaction internal invalid is isolation issue join judgement killed kind known large
  leftover level list listen living load local location long look lookup loss low machine made main major maker
  managed member memory mend merge narrow nested new not note observe observer occupancy of offer onward
  operate options or origin out outcome pace pack pattern peer place plan platform preparation
  prepared probe process program progress put query quotas ranges raw reach reader readiness reason
  receive refused rejected rejoin remote remuda repeatable reply resolve resource response
  restore rewrap rotate rows run runner save scope search secret section seen send sent served setup
  shared shown shutdown signed size small source status step storage stray submission submit summary sweep
  system table tail take taken tell test text through time too tools touch traffic trail tree type
  unavailable unjudged unknown unsupported unwrap up update ups usage use validation value version view visit
  wanted weights whole withdraw work written wrong`;

const programming = `
  app args arguments assembler backend backpressure batch boot buffer byte cache callbacks chunk compile compression
  connector controller crypto digest error executable exporters gauge hmac id interceptor json labels leaf limiter
  listener lock log metadata meter method metrics millis mutable parameter params parsed parser patch pump
  queue ref references registry schedule server signature slice subscription truncate truncation unpack unseal unzip
  validate verifier verify worker yield zip`;

const network = `
  auth authorization authorize bearer body curl dial docs header http inbox multipart navigation net oidc
  openapi opentelemetry packet path port post protocol raw security socket tls token tunnel upgrade upload uploads
  url web`;

const machine = `
  aws errno frame heap inline kernel kms mounts netlink pings pipe prlimit processor randr s sandbox scratch sentinels syscall
  uids x zstd`;

const browsers = `
  bidi capabilities captcha collector console cookies crx screenshots scroll switch viewport`;

export const plainWords: ReadonlySet<string> = new Set(
  [english, programming, network, machine, browsers].join(" ").split(/\s+/).filter(Boolean),
);
