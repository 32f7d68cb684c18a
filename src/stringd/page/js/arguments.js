/** An action's form as the command that runs it. Pure. */

/** @typedef {{ name: string, type: string, required: boolean, description: string, default: string | null, choices: string[], minimum: number | null, maximum: number | null }} Field */

/**
 * One value as one word. Nothing inside single quotes means anything but itself; one of them is written between double quotes.
 * @param {string} value
 */
export const quoted = (value) => `'${value.replaceAll("'", `'"'"'`)}'`;

/** @param {Field} field */
export const isSwitch = (field) => ["boolean", "bool", "flag"].includes(field.type);

/** What counts when nothing is sent. @param {Field} field */
const unsent = (field) => field.default ?? (isSwitch(field) ? "false" : "");

/** What a field shows before anybody typed: its default, else the topic's variable of its name. @param {Field} field @param {Map<string, string>} variables */
export function initial(field, variables) {
  const own = `{${field.name}}`;
  return field.default === null && variables.has(own) ? own : unsent(field);
}

/**
 * The command of a filled form. What equals its default is left out, so that stays the document's own.
 * @param {string} id @param {Field[]} fields @param {Record<string, string>} values
 */
export function actionCommand(id, fields, values) {
  const words = [`/act.${id}`];
  for (const field of fields) {
    const value = values[field.name] ?? "";
    if (value === "" || value === unsent(field)) continue;
    words.push(`--${field.name}`, quoted(value));
  }
  return words.join(" ");
}
