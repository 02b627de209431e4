package publish

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

// maxTemplate is the maximum length of a template in bytes: a forge limits the whole body.
const maxTemplate = 32 << 10

// templates returns the paths of request templates, in order of preference.
func templates(tracker string) []string {
	var hub []string
	for _, folder := range []string{".github/", "", "docs/"} {
		hub = append(hub, folder+"pull_request_template.md", folder+"PULL_REQUEST_TEMPLATE.md")
	}
	lab := []string{".gitlab/merge_request_templates/Default.md", ".gitlab/merge_request_templates/default.md"}
	if tracker == "gitlab" {
		return append(lab, hub...)
	}
	return append(hub, lab...)
}

// Template returns the repository's own request template in the commit; "" if there is none or it is too long. Templates of
// the tracker's kind of forge come first.
func Template(ctx context.Context, g git.Runner, commit, tracker string) (string, error) {
	paths := templates(tracker)
	out, err := g.Out(ctx, append([]string{"ls-tree", "-z", "--long", "--full-tree", commit, "--"}, paths...)...)
	if err != nil {
		return "", fmt.Errorf("request template: %w", err)
	}
	best, object := len(paths), ""
	for entry := range strings.SplitSeq(out, "\x00") {
		head, path, _ := strings.Cut(entry, "\t")
		f := strings.Fields(head) // mode, kind, object, size
		if len(f) != 4 || !strings.HasPrefix(f[0], "100") {
			continue // a link leads elsewhere
		}
		size, err := strconv.Atoi(f[3])
		if at := slices.Index(paths, path); err == nil && size <= maxTemplate && at >= 0 && at < best {
			best, object = at, f[2]
		}
	}
	if object == "" {
		return "", nil
	}
	text, err := g.Out(ctx, "cat-file", "blob", object)
	if err != nil {
		return "", fmt.Errorf("request template: %w", err)
	}
	return strings.TrimSpace(strings.ToValidUTF8(text, "\ufffd")), nil
}
