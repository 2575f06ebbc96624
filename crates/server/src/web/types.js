/**
 * What the server says, as far as the console reads it. The shapes are those of `docs/http.md`; nothing in here
 * runs.
 *
 * @typedef {"requester" | "approver"} Role
 *
 * @typedef {object} Me
 * @property {Role} role
 * @property {string} version
 * @property {string} workspace
 * @property {any} [sandbox]
 *
 * @typedef {object} Conversation
 * @property {string} id
 * @property {"idle" | "working" | "recorded"} state
 * @property {string} [title]
 * @property {string} [cwd]
 * @property {string} [model]
 * @property {string} [provider]
 * @property {string} [approval_policy]
 * @property {any} [sandbox]
 * @property {string} [started]
 * @property {number} [last_event]
 * @property {{input: number, output: number, total: number}} [usage]
 * @property {number} [context_window]
 *
 * @typedef {object} PatchChange
 * @property {string} path
 * @property {"add" | "delete" | "update"} kind
 * @property {string} [moved_to]
 * @property {string} diff
 *
 * @typedef {object} ExecQuestion
 * @property {"ExecApprovalRequest"} type
 * @property {boolean} without_sandbox
 *
 * @typedef {object} PatchQuestion
 * @property {"ApplyPatchApprovalRequest"} type
 * @property {PatchChange[]} changes
 *
 * @typedef {object} ShownQuestion
 * @property {string} title
 * @property {string} summary
 * @property {string[]} subject
 * @property {string} [place]
 * @property {{kind: string, label: string, text: string}[]} facts
 * @property {Choice[]} choices
 * @property {{title: string, lines: string[]}[]} details
 *
 * @typedef {{key: string, word: string, label: string, effect: string, said: string, answer: Answer}} Choice
 *
 * @typedef {object} OpenQuestion
 * @property {string} id
 * @property {string} front_end
 * @property {string} workspace
 * @property {string} [conversation]
 * @property {string} asked
 * @property {ExecQuestion | PatchQuestion} question
 * @property {ShownQuestion} shown
 * @property {boolean} [cut]
 *
 * @typedef {{decision: string, scope?: "call" | "session", feedback?: string}} Answer
 *
 * @typedef {object} Process
 * @property {string} id
 * @property {string} [process_id]
 * @property {string} [conversation]
 * @property {string[] | string} command
 * @property {string} cwd
 * @property {number} [pid]
 * @property {"running" | "waiting_for_input" | "exited"} state
 * @property {number} [exit_code]
 * @property {number} [age_seconds]
 * @property {number} [printed_bytes]
 * @property {string} [last_line]
 *
 * @typedef {object} AuditEntry
 * @property {number} seq
 * @property {string} time
 * @property {string} session
 * @property {{type: string, [field: string]: any}} record
 *
 * @typedef {{start: string, commands: number, approvals: number, denials: number}} Bucket
 */

export {};
