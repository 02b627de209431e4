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

// Planting says where canaries are wanted.
type Planting struct {
	// Files are all files of the repository, slash-separated; where canaries are planted in several trees, those of all.
	Files []string
	// Read returns the text of one of the files. A file with an error has no canary beside it.
	Read func(path string) ([]byte, error)
	// Near are files that were changed: the canaries beside them come first.
	Near []string
	// Most is how many places near changes get one; 0: 3.
	Most int
	// Suffix becomes part of all names. A caller takes random letters and digits, so that nothing can know the names.
	Suffix string

	roleOf func(file string) (ecosystem.Role, string)
}

// Canaries returns tests that must fail: for each ecosystem some beside changed files and one beside most of its other
// tests. A gate that passes although it passed over one is not sound, if it fails with that one on the commit before the
// change: only the caller can see that, since no gate runs the tests of all ecosystems. Each is to be planted alone,
// because code that ends the process early hides only the tests that run with it. Scripts and make have none.
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

// plant returns the canaries of a site: the files of one folder beside which to plant, the best first.
func (e language) plant(site []string, p Planting, suffix string, taken func(ecosystem.Canary) bool) []ecosystem.Canary {
	const tries = 20 // names
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

// neighbour is the file of a site that a canary is like: of the first that can be read and are surely tests the one that asserts
// most. One that was changed counts least, since whoever changed it would choose what the canary asserts.
func (e language) neighbour(site []string, p Planting) (best string, text []byte, found bool) {
	const enough = 20 // files to look at
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

// sites returns the places in which to plant, those near changes first.
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
	// Roles cost most, so only the folders that are used get them.
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
		// Code whose tests stand further up, such as that of a crate.
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

// rank says how surely the ecosystem's tools run the file as a test: the index of its first group that says so, or the
// number of groups.
func (e language) rank(p Planting, file string) int {
	i := e.group(file)
	if i < len(e.Groups) {
		if role, _ := p.roleOf(file); role != ecosystem.Test {
			return len(e.Groups)
		}
	}
	return i
}

// group is rank without a look at the other roles that the file may have.
func (e language) group(file string) int {
	if match.Any(e.Sources, file) && !match.Within(file, match.Foreign) {
		i := slices.IndexFunc(e.Groups, func(g ecosystem.Group) bool { return g.Role == ecosystem.Test && match.Any(g.Files, file) })
		if i >= 0 && (e.Excluded == nil || !e.Excluded(file, nil)) { // it takes longest
			return i
		}
	}
	return len(e.Groups)
}

// clean makes a suffix that is part of an identifier and of a file's name in every language.
func clean(suffix string) string {
	return "x" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(suffix))
}
