package arch_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

const (
	fileLimit   = 400  // lines per file
	testLimit   = 500  // lines per file that only tests use
	folderLimit = 2500 // lines per folder, without subfolders
)

// TestSizes limits files and folders to a size that can be read in one go. It does not count tests, but packages that only
// tests use.
func TestSizes(t *testing.T) {
	t.Parallel()
	lines := map[string]int{}
	eachText(t, func(file, text string) {
		if strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
			lines[file] = strings.Count(text, "\n")
		}
	})
	if len(lines) < 200 {
		t.Errorf("only %d files were read", len(lines))
	}
	for _, problem := range checkSizes(lines) {
		t.Error(problem)
	}
}

// isTestSupport reports whether the folder contains tests, or is named after what it tests, such as trackertest.
func isTestSupport(folder string) bool { return isExempt(folder) || strings.HasSuffix(folder, "test") }

// checkSizes returns the files and folders above the limits.
func checkSizes(files map[string]int) (problems []string) {
	sizes := map[string]int{}
	limit := map[string]int{}
	for file, n := range files {
		sizes[file], limit[file] = n, fileLimit
		if isTestSupport(path.Dir(file)) {
			limit[file] = testLimit
		}
		folder := path.Dir(file)
		sizes[folder] += n
		limit[folder] = folderLimit
	}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if sizes[name] > limit[name] {
			problems = append(problems, fmt.Sprintf("%s has %d lines, at most %d are allowed: split it", name, sizes[name], limit[name]))
		}
	}
	return problems
}

func TestCheckSizes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files map[string]int
		want  string // part of the problem; empty: none
	}{
		{"at the limits", map[string]int{"a/a.go": 400, "a/b/b.go": 400}, ""},
		{"file", map[string]int{"a/a.go": 401}, "a/a.go has 401 lines"},
		{"folder", map[string]int{
			"a/1.go": 400, "a/2.go": 400, "a/3.go": 400, "a/4.go": 400, "a/5.go": 400, "a/6.go": 400, "a/7.go": 101,
		}, "a has 2501 lines"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := checkSizes(tt.files)
			switch {
			case tt.want == "" && len(got) > 0:
				t.Errorf("problems: %q", got)
			case tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)):
				t.Errorf("problems are %q, want one with %q", got, tt.want)
			}
		})
	}
}
