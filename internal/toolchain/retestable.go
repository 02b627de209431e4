package toolchain

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/ecosystem/match"
	"github.com/ralph-pool/ralph/internal/suite"
)

// maxVisited limits the number of files that Retestable visits.
const maxVisited = 20_000

var errFound = errors.New("found")

// Retestable reports whether the project has tests whose files can be run separately.
func Retestable(top string, lines suite.Lines) bool {
	files := os.DirFS(top)
	read := func(name string) ([]byte, bool) {
		info, err := fs.Stat(files, name)
		if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
			return nil, false
		}
		text, err := fs.ReadFile(files, name)
		return text, err == nil
	}
	looks := 0
	err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if looks++; looks > maxVisited {
			return fs.SkipAll
		}
		switch {
		case err != nil:
			return fs.SkipDir // the user may not be allowed to read it
		case e.IsDir():
			if name != "." && (strings.HasPrefix(e.Name(), ".") || match.Within(name+"/x", match.Foreign)) {
				return fs.SkipDir
			}
			return nil
		case !e.Type().IsRegular():
			return nil
		}
		if provable(name, lines, read) {
			return errFound
		}
		return nil
	})
	return errors.Is(err, errFound)
}

func provable(name string, lines suite.Lines, read func(string) ([]byte, bool)) bool {
	if role, _ := suite.RoleOf(name, nil); role != ecosystem.Test {
		return false
	}
	text, ok := read(name)
	if !ok || !suite.HoldsTests(name, text) {
		return false
	}
	_, ok = suite.RerunOf(name, text, lines, read)
	return ok
}
