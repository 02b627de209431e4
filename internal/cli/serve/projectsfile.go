package serve

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/pattern"
)

// The list of projects is edited as text, so that comments, order and all else in the file stay unchanged.

// errNotAList is the error of a list that cannot be edited by lines.
var errNotAList = errors.New("its projects are not a plain list of \"- repo: PATH\" lines; edit it by hand")

var (
	projectsKey = pattern.Lazy(`^projects:\s*(#.*)?$`)
	listItem    = pattern.Lazy(`^( *)-(\s|$)`)
)

// span is a range of lines: from is the first, to is one past the last.
type span struct{ from, to int }

// projectLines finds the items of the list. Blank lines and comments after an item belong to no item. insert is the line for
// a new item. Without the key "projects", insert is the end of the file and indent is -1.
func projectLines(lines []string) (items []span, insert, indent int, err error) {
	at, indent := -1, -1
	for i, line := range lines {
		switch {
		case projectsKey().MatchString(line):
			at = i
		case strings.HasPrefix(line, "projects:"):
			return nil, 0, 0, errNotAList
		}
	}
	if at < 0 {
		return nil, len(lines), -1, nil
	}
	insert = at + 1
	for i := at + 1; i < len(lines); i++ {
		text := strings.TrimSpace(lines[i])
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		m := listItem().FindStringSubmatch(lines[i])
		switch depth := len(lines[i]) - len(strings.TrimLeft(lines[i], " ")); {
		case m != nil && (indent < 0 || len(m[1]) == indent):
			indent = len(m[1])
			items = append(items, span{i, i + 1})
		case indent < 0:
			return nil, 0, 0, errNotAList
		case depth <= indent: // the next key of the file
			return items, insert, indent, nil
		default:
			items[len(items)-1].to = i + 1
		}
		insert = i + 1
	}
	return items, insert, max(indent, 2), nil
}

// addProject returns the text with a project added to the end of the list.
func addProject(text, repo, name string) (string, error) {
	lines := splitLines(text)
	_, insert, indent, err := projectLines(lines)
	if err != nil {
		return "", err
	}
	var added []string
	if indent < 0 {
		added, indent = append(added, "projects:"), 2
	}
	pad := strings.Repeat(" ", indent)
	added = append(added, pad+"- repo: "+scalar(repo))
	if name != "" {
		added = append(added, pad+"  name: "+scalar(name))
	}
	return strings.Join(append(append(lines[:insert:insert], added...), lines[insert:]...), "\n") + "\n", nil
}

// removeProject returns the text without the nth project, counted from 0.
func removeProject(text string, n int) (string, error) {
	lines := splitLines(text)
	items, _, _, err := projectLines(lines)
	if err != nil {
		return "", err
	}
	if n >= len(items) {
		return "", errNotAList
	}
	return strings.Join(append(lines[:items[n].from:items[n].from], lines[items[n].to:]...), "\n") + "\n", nil
}

func splitLines(text string) []string {
	if text = strings.TrimRight(text, "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// scalar formats a text as a YAML scalar.
func scalar(s string) string {
	out, err := yaml.Marshal(s)
	if err != nil || strings.Count(string(out), "\n") != 1 {
		return fmt.Sprintf("%q", s)
	}
	return strings.TrimSpace(string(out))
}

// replaceProjects replaces the file atomically, after checking that a service accepts the new text.
func replaceProjects(a *compose.App, file, text string) error {
	target := file
	if linked, err := filepath.EvalSymlinks(file); err == nil {
		target = linked
	}
	mode := os.FileMode(0o600)
	if info, err := os.Stat(target); err == nil {
		mode = info.Mode().Perm()
	}
	temp, err := disk.WriteTemp(filepath.Dir(target), []byte(text), mode, disk.Power)
	if err != nil {
		return err
	}
	if _, err := config.ReadService(temp, a.Host.Env, a.Choices()); err != nil {
		_ = os.Remove(temp)
		return &exit.Error{Status: exit.Usage, Err: errors.New(strings.ReplaceAll(err.Error(), temp, file))}
	}
	return disk.Install(temp, target, disk.Power)
}
