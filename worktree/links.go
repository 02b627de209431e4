package worktree

import (
	"context"
	"fmt"
	"path"
	"strings"
)

// Links are the symbolic links of a commit, by path, and the path that each leads to; "." is the top. A link that leads out
// of the repository is none of them.
func (r *Repo) Links(ctx context.Context, commit string) (map[string]string, error) {
	out, err := r.git.out(ctx, "ls-tree", "-r", "-z", "--full-tree", "--end-of-options", commit)
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	at := map[string][]string{} // by the name of the blob
	for entry := range strings.SplitSeq(out, "\x00") {
		meta, name, _ := strings.Cut(entry, "\t")
		if fields := strings.Fields(meta); len(fields) == 3 && fields[0] == "120000" {
			at[fields[2]] = append(at[fields[2]], name)
		}
	}
	if len(at) == 0 {
		return nil, nil
	}
	blobs := make([]string, 0, len(at))
	for blob := range at {
		blobs = append(blobs, blob)
	}
	contents, err := r.git.readObjectsOf(ctx, "blob", blobs)
	if err != nil {
		return nil, fmt.Errorf("read links: %w", err)
	}
	links := map[string]string{}
	for blob, names := range at {
		for _, name := range names {
			target := path.Join(path.Dir(name), contents[blob])
			if !path.IsAbs(contents[blob]) && target != ".." && !strings.HasPrefix(target, "../") {
				links[name] = target
			}
		}
	}
	return links, nil
}
