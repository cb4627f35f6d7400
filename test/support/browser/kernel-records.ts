/** What Linux 6.18 writes of one kill, as records of /dev/kmsg. */
export function recordsOf({ pid = 7, cgroup = "/a/own/b-1", name = "chrome", constraint = "MEMCG" }): string {
  const memory = constraint === "MEMCG" ? "Memory cgroup out of memory" : "Out of memory";
  const chosen = `oom-kill:constraint=CONSTRAINT_${constraint},nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=${cgroup},task_memcg=${cgroup},task=${name},pid=${pid},uid=201000`;
  const killed = `${memory}: Killed process ${pid} (${name}) total-vm:1518175424kB, anon-rss:1000kB, file-rss:200kB, shmem-rss:30kB, UID:201000 pgtables:3044kB oom_score_adj:300`;
  return `4,901,69533976956,-;${name} invoked oom-killer: order=0\n SUBSYSTEM=none\n6,902,69533976957,-;${chosen}\n3,903,69533976987,-;${killed}\n`;
}
