package serve

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEditProjects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		edit       func(string) (string, error)
		want       string
	}{
		{"add", projectsText, func(s string) (string, error) { return addProject(s, "/src/new", "") },
			strings.Replace(projectsText, "\n\n# the end", "\n  - repo: /src/new\n\n# the end", 1)},
		{"add with a name", projectsText, func(s string) (string, error) { return addProject(s, "/src/a: b", "new") },
			strings.Replace(projectsText, "\n\n# the end", "\n  - repo: \"/src/a: b\"\n    name: new\n\n# the end", 1)},
		{"add to nothing", "", func(s string) (string, error) { return addProject(s, "/src/new", "") }, "projects:\n  - repo: /src/new\n"},
		{"add to no list", "parallel: 2\n", func(s string) (string, error) { return addProject(s, "/src/new", "") },
			"parallel: 2\nprojects:\n  - repo: /src/new\n"},
		{"add to an empty list", "projects:\nparallel: 2\n", func(s string) (string, error) { return addProject(s, "/src/new", "") }, ""},
		{"add without indentation", "projects:\n- repo: /a\nparallel: 2", func(s string) (string, error) { return addProject(s, "/b", "") },
			"projects:\n- repo: /a\n- repo: /b\nparallel: 2\n"},
		{"add to a flow", "projects: [{repo: /a}]\n", func(s string) (string, error) { return addProject(s, "/b", "") }, ""},
		{"remove the first", projectsText, func(s string) (string, error) { return removeProject(s, 0) },
			strings.Replace(projectsText, "  - repo: /src/shop\n    name: shop\n    gate:\n      - make test # slow\n", "", 1)},
		{"remove the last", projectsText, func(s string) (string, error) { return removeProject(s, 1) },
			strings.Replace(projectsText, "  - name: site\n    repo: /src/site\n", "", 1)},
		{"remove from a flow", "projects: [{repo: /a}, {repo: /b}]\n", func(s string) (string, error) { return removeProject(s, 1) }, ""},
	} {
		got, err := c.edit(c.text)
		if (err != nil) != (c.want == "") || got != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, got, c.want)
		}
	}
}

// Adding and removing a project leaves the text unchanged.
func TestEditProjectsUndoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := "parallel: 2\nprojects:\n"
		n := rapid.IntRange(1, 4).Draw(t, "n")
		for i := range n {
			text += rapid.SampledFrom([]string{"", "\n", "  # note\n", "# note\n"}).Draw(t, "between")
			text += fmt.Sprintf("  - repo: /src/%d\n", i) + rapid.SampledFrom([]string{"", "    gate: |\n      - not an item\n\n      more\n", "    # note\n    model: x\n"}).Draw(t, "more")
		}
		text += rapid.SampledFrom([]string{"", "# the end\n", "\n\n"}).Draw(t, "end")
		more, err := addProject(text, "/src/new", "new")
		if err != nil {
			t.Fatal(err)
		}
		back, err := removeProject(more, n)
		if want := strings.TrimRight(text, "\n") + "\n"; err != nil || back != want {
			t.Fatalf("%v\n%s\nwant\n%s", err, back, want)
		}
	})
}

const projectsText = `# what we work
parallel: 6 # slots

projects: # the list
  # the shop
  - repo: /src/shop
    name: shop
    gate:
      - make test # slow

  # the site
  - name: site
    repo: /src/site

# the end
`
