package git

import (
	"context"
	"strings"
)

// Status examines a checkout without changing anything and without starting git in nested repositories. It returns HEAD's
// commit, empty if there is none yet, and whether the files differ from that commit.
func (g Runner) Status(ctx context.Context) (head string, dirty bool, err error) {
	out, err := g.Run(ctx, "", "status", "--porcelain=v2", "-z", "--branch", "--untracked-files=normal",
		"--no-renames", "--ignore-submodules=dirty", "--no-ahead-behind")
	if err != nil {
		return "", false, err
	}
	for record := range strings.SplitSeq(out, "\x00") {
		header, isHeader := strings.CutPrefix(record, "# ")
		if !isHeader {
			dirty = dirty || record != ""
			continue
		}
		if oid, ok := strings.CutPrefix(header, "branch.oid "); ok && IsObject(oid) {
			head = oid
		}
	}
	return head, dirty, nil
}
