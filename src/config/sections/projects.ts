import { Type } from "typebox";
import { count, switched } from "../kinds.js";

export const projectsSection = Type.Object({
  enabled: switched("whether there are projects beside the default one; the same for all daemons")(false),
  max_projects: count("projects of the organization", "projects")(1000),
});
