package mockmodel

import (
	"encoding/json"
	"fmt"
	"slices"
)

// toolCall is a call in the API's terms.
type toolCall struct {
	id    string // id of the message, "_", and the number of the call
	name  string
	input object
	code  string // replaces input for a tool that takes program text
}

// isCode reports whether the call contains program text.
func (c toolCall) isCode() bool { return c.input == nil }

// callShell returns a call of the shell tool under the CLI's name for it. ok is false if there is none.
func callShell(tools []tool, id, command string) (_ toolCall, ok bool) {
	for _, name := range []string{"Bash", "exec_command", "shell_command", "shell", "exec"} {
		i := slices.IndexFunc(tools, func(t tool) bool { return t.name == name })
		if i < 0 {
			continue
		}
		if t := tools[i]; t.code {
			quoted, _ := json.Marshal(command) // a string always encodes
			return toolCall{id: id, name: name, code: fmt.Sprintf(
				"const r = await tools.exec_command({cmd: %s, yield_time_ms: 30000});\ntext(JSON.stringify(r));\n", quoted)}, true
		}
		return toolCall{id: id, name: name, input: shellInput(tools[i].schema, command)}, true
	}
	return toolCall{}, false
}

// shellInput fills in the tool's schema: the command, and harmless values for other required parameters.
func shellInput(schema object, command string) object {
	in := object{}
	props := asObject(schema["properties"])
	for _, name := range []string{"command", "cmd"} {
		switch p := asObject(props[name]); {
		case p == nil:
		case p["type"] == "array":
			in[name] = []any{"sh", "-c", command}
		default:
			in[name] = command
		}
	}
	for _, k := range list(schema["required"]) {
		name := text(k)
		if _, done := in[name]; done {
			continue
		}
		p := asObject(props[name])
		switch choices := list(p["enum"]); {
		case len(choices) > 0:
			in[name] = choices[0]
		case p["type"] == "integer" || p["type"] == "number":
			in[name] = 30
		case p["type"] == "boolean":
			in[name] = false
		default:
			in[name] = "Run the scripted command"
		}
	}
	return in
}
