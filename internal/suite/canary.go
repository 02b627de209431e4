package suite

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/ecosystem/match"
)

// Planting describes where canaries are wanted.
type Planting struct {
	// Files are all files of the repository, slash-separated. If canaries are planted in several trees, they are the files
	// of all trees.
	Files []string
	// Read returns the content of one of the files. A file that cannot be read gets no canary beside it.
	Read func(path string) ([]byte, error)
	// Near are changed files. Canaries beside them come first.
	Near []string
	// Most is the maximum number of places near changes that get a canary. 0 means 3.
	Most int
	// Suffix becomes part of all names. It should be random letters and digits, so that no code can know the names.
	Suffix string

	roleOf func(file string) (ecosystem.Role, string)
}

// Canaries returns tests that must fail: for each ecosystem some beside changed files, and one where most of its other tests are.
//
// If a gate passes with a canary, but fails with the same canary on the commit before the change, the change has disabled the
// gate. Only the caller can compare the two, because no gate runs the tests of all ecosystems. Each canary must be planted
// alone, because code that ends the process early hides only the tests of the same process. Scripts and make have no canaries.
func Canaries(p Planting) []ecosystem.Canary {
	p.roleOf = roles(nil)
	suffix := clean(p.Suffix)
	var out []ecosystem.Canary
	taken := func(c ecosystem.Canary) bool {
		same := func(o ecosystem.Canary) bool { return o.Path == c.Path }
		return slices.Contains(p.Files, c.Path) || slices.ContainsFunc(out, same)
	}
	for _, e := range languages() {
		if e.Canary == nil {
			continue
		}
		for _, site := range e.sites(p) {
			out = append(out, e.plant(site, p, suffix, taken)...)
		}
	}
	return out
}

// plant returns the canaries for a site. A site is the files of one folder beside which to plant, the best first.
func (e language) plant(site []string, p Planting, suffix string, taken func(ecosystem.Canary) bool) []ecosystem.Canary {
	const tries = 20 // attempts to find an unused name
	file, text, found := e.neighbour(site, p)
	if !found {
		return nil
	}
	place := ecosystem.Site{Text: text, Suffix: suffix}
	if e.rank(p, file) < len(e.Groups) {
		place.Beside = path.Base(file)
	}
	for range tries {
		canaries := e.Canary(place)
		for i := range canaries {
			canaries[i].Ecosystem, canaries[i].Mark = e.Name, suffix
			canaries[i].Path = path.Join(path.Dir(file), canaries[i].Path)
		}
		if !slices.ContainsFunc(canaries, taken) {
			return canaries
		}
		place.Suffix += "x"
	}
	return nil
}

// neighbour returns the file of a site that the canary should resemble: among the first readable ones of the best rank, the
// one with the most assertions. Changed files come last, because whoever changed them could choose what the canary asserts.
func (e language) neighbour(site []string, p Planting) (best string, text []byte, found bool) {
	const enough = 20 // maximum number of files to try
	most, first := -1, 0
	for _, file := range site[:min(enough, len(site))] {
		read, err := p.Read(file)
		if err != nil || e.Excluded != nil && e.Excluded(file, read) || found && e.rank(p, file) > first {
			continue
		}
		read = read[:min(maxText, len(read))]
		asserts := 0
		if !slices.Contains(p.Near, file) {
			asserts = 1 + Count(file, read).Assertions
		}
		if asserts > most {
			best, text, found, most, first = file, read, true, asserts, e.rank(p, file)
		}
	}
	return best, text, found
}

// sites returns the places for canaries, those near changes first.
func (e language) sites(p Planting) [][]string {
	const usual = 3
	beside := map[string][]string{} // by folder
	tests := map[string]int{}       // by folder
	for _, file := range p.Files {
		test := e.group(file) < len(e.Groups)
		if !test && (e.Home == nil || !e.Home(file)) {
			continue
		}
		folder := path.Dir(file)
		if test {
			tests[folder]++
		}
		beside[folder] = append(beside[folder], file)
	}
	// Roles are expensive, so only the folders that are used compute them.
	looked := map[string]bool{}
	sure := func(folder string) []string {
		if looked[folder] {
			return beside[folder]
		}
		looked[folder] = true
		ranks := map[string]int{}
		tests[folder] = 0
		beside[folder] = slices.DeleteFunc(beside[folder], func(file string) bool {
			ranks[file] = e.rank(p, file)
			if ranks[file] < len(e.Groups) {
				tests[folder]++
				return false
			}
			return e.Home == nil || !e.Home(file)
		})
		slices.SortFunc(beside[folder], func(a, b string) int { return cmp.Or(cmp.Compare(ranks[a], ranks[b]), cmp.Compare(a, b)) })
		return beside[folder]
	}
	var sites [][]string
	used := map[string]bool{}
	for _, file := range p.Near {
		folder := path.Dir(path.Clean(file))
		source := match.Any(e.Sources, file)
		// The tests of a source file may be in a folder above it, such as those of a crate.
		for source && len(sure(folder)) == 0 && folder != "." && folder != "/" {
			folder = path.Dir(folder)
		}
		if files := sure(folder); len(files) > 0 && (source || tests[folder] > 0) && !used[folder] && len(sites) < cmp.Or(p.Most, usual) {
			used[folder] = true
			sites = append(sites, files)
		}
	}
	var general []string
	for _, folder := range slices.SortedFunc(maps.Keys(beside), func(a, b string) int { return cmp.Or(tests[b]-tests[a], cmp.Compare(a, b)) }) {
		if files := sure(folder); !used[folder] && len(files) > 0 && (tests[folder] > 0 || general == nil) {
			if general = files; tests[folder] > 0 {
				break
			}
		}
	}
	if general != nil {
		sites = append(sites, general)
	}
	return sites
}

// rank says how surely the ecosystem's tools run the file as a test: the index of the first group that matches it, or the
// number of groups if none does.
func (e language) rank(p Planting, file string) int {
	i := e.group(file)
	if i < len(e.Groups) {
		if role, _ := p.roleOf(file); role != ecosystem.Test {
			return len(e.Groups)
		}
	}
	return i
}

// group is rank without a check of the file's other roles.
func (e language) group(file string) int {
	if match.Any(e.Sources, file) && !match.Within(file, match.Foreign) {
		i := slices.IndexFunc(e.Groups, func(g ecosystem.Group) bool { return g.Role == ecosystem.Test && match.Any(g.Files, file) })
		if i >= 0 && (e.Excluded == nil || !e.Excluded(file, nil)) { // last, because it is slowest
			return i
		}
	}
	return len(e.Groups)
}

// clean returns a suffix that is valid in identifiers and file names of every language.
func clean(suffix string) string {
	return "x" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(suffix))
}
