import { expect, test } from "vitest";
import { rootPrincipal } from "../../../src/access/principal.js";
import { makeForgetProjects } from "../../../src/access/forget-projects.js";
import { makeProjectOperations } from "../../../src/access/project-operations.js";
import { newProjectId } from "../../../src/base/ids.js";
import { RedisLimitStore } from "../../../src/store/organization/limit-store.js";
import { RedisProjectDirectory } from "../../../src/store/organization/project-directory.js";
import { accessKey } from "../../../src/store/redis/keys.js";
import { onBoth } from "../../support/store/on-both.js";

const root = rootPrincipal({ id: "root", email: "root@remuda.invalid", name: null });

onBoth("which projects there are", ({ bed }) => {
  test("a removal that is asked for again, since its answer was lost, is answered the same", async () => {
    const directory = new RedisProjectDirectory(bed().store);
    const id = newProjectId();
    await directory.create({ id, name: "gone", most: 9 });
    await directory.change(id, { status: "archived" });
    expect([await directory.remove(id), await directory.remove(id)]).toEqual(["removed", "removed"]);
    expect(await directory.remove(newProjectId())).toBe("missing");
  });

  test("a project that somebody makes active again while it is being deleted stays", async () => {
    const { store } = bed();
    const directory = new RedisProjectDirectory(store);
    const id = newProjectId();
    await directory.create({ id, name: "wanted", most: 9 });
    let looks = 0;
    const operations = makeProjectOperations({
      directory,
      limits: new RedisLimitStore(store, bed().allProjects),
      maxProjects: 9,
      concurrentSessions: null,
      contents: {
        isRunning: async () => false,
        // The second look is the one at the closed project; after it there is none.
        async hasRegistered() {
          if ((looks += 1) === 2) await operations.update(id, { status: "active" }, root);
          return false;
        },
      },
    });
    expect(await operations.remove(id, root)).toMatchObject({ kind: "refused", code: "conflict" });
    expect(await directory.find(id)).toMatchObject({ name: "wanted", status: "active" });
    expect(await operations.remove(id, root)).toMatchObject({ kind: "done" });
    expect(await directory.find(id)).toBeUndefined();
  });

  test("a project whose control dies while it is being deleted is again what it was", async () => {
    const { store, redis } = bed();
    const directory = new RedisProjectDirectory(store);
    const limits = new RedisLimitStore(store, bed().allProjects);
    const id = newProjectId();
    await directory.create({ id, name: "staying", most: 9 });
    let looks = 0;
    const operations = makeProjectOperations({
      directory,
      limits,
      maxProjects: 9,
      concurrentSessions: null,
      contents: {
        isRunning: async () => false,
        async hasRegistered() {
          if ((looks += 1) === 2) throw new Error("it is dead");
          return false;
        },
      },
    });
    const tick = makeForgetProjects({
      directory,
      limits,
      findRunning: async () => undefined,
      removeRegistered: async () => {},
      isEmpty: async () => true,
      erase: async () => {},
    });
    await expect(operations.remove(id, root)).rejects.toThrow("it is dead");
    await tick();
    expect(await directory.find(id)).toMatchObject({ status: "archived" });
    const key = accessKey("projects");
    const record = JSON.parse((await redis.hget(key, id)) ?? "{}") as { closing?: { deadline: number } };
    if (record.closing) record.closing.deadline -= 61_000;
    await redis.hset(key, id, JSON.stringify(record));
    await tick();
    expect(await directory.find(id)).toMatchObject({ name: "staying", status: "active" });
    expect(await redis.sismember(accessKey("activeProjects"), id)).toBe(1);
    expect(await operations.remove(id, root)).toMatchObject({ kind: "done" });
  });

  test("a project that cannot be forgotten now holds up no other", async () => {
    const { store, redis } = bed();
    const directory = new RedisProjectDirectory(store);
    const [sick, well, orphaned] = [newProjectId(), newProjectId(), newProjectId()];
    await redis.zadd(accessKey("deletedProjects"), 1, sick, 2, orphaned, 3, well);
    const ended: string[] = [];
    const tick = makeForgetProjects({
      directory,
      limits: new RedisLimitStore(store, bed().allProjects),
      async findRunning(project) {
        if (project === sick) throw new Error("its slot is away");
        return project === orphaned ? async () => void ended.push(project) : undefined;
      },
      async removeRegistered(project) {
        if (project === sick) throw new Error("its slot is away");
      },
      isEmpty: async () => true,
      erase: async () => {},
    });
    await expect(tick()).rejects.toThrow("its slot is away");
    expect(ended).toEqual([orphaned]);
    expect(await redis.zrange(accessKey("deletedProjects"), "0", "-1")).toEqual([sick]);
  });

  test("a project that cannot be archived stays active, also where its old name is another's by then", async () => {
    const { store } = bed();
    const directory = new RedisProjectDirectory(store);
    const [id, other] = [newProjectId(), newProjectId()];
    await directory.create({ id, name: "old", most: 9 });
    let looks = 0;
    const operations = makeProjectOperations({
      directory,
      limits: new RedisLimitStore(store, bed().allProjects),
      maxProjects: 9,
      concurrentSessions: null,
      contents: {
        // A pool begins there between the two looks, and somebody takes the name that became free.
        async isRunning() {
          if ((looks += 1) === 1) return false;
          await directory.create({ id: other, name: "old", most: 9 });
          return true;
        },
        hasRegistered: async () => false,
      },
    });
    const archived = await operations.update(id, { name: "new", status: "archived" }, root);
    expect(archived).toMatchObject({ kind: "refused", code: "project_not_empty" });
    expect(await directory.find(id)).toMatchObject({ name: "new", status: "active" });
    expect(await directory.find(other)).toMatchObject({ name: "old", status: "active" });
  });
});
