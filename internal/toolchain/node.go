package toolchain

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// OldNode reports whether a project needs a newer Node.js than the image of a build file has. wanted is the requirement in
// package.json, or "" if the image meets it or it is unknown; has is the image's major version.
func OldNode(top, buildFile string) (wanted string, has int) {
	text, err := os.ReadFile(filepath.Join(top, "package.json"))
	var project struct{ Engines struct{ Node string } }
	if err != nil || json.Unmarshal(text, &project) != nil {
		return "", 0
	}
	build, err := os.ReadFile(buildFile)
	from := regexp.MustCompile(`(?m)^FROM (?:\S*/)?node:(\d+)`).FindSubmatch(build)
	if err != nil || from == nil {
		return "", 0
	}
	has, _ = strconv.Atoi(string(from[1]))
	number := regexp.MustCompile(`\d+`)
	for one := range strings.SplitSeq(project.Engines.Node, "||") { // the first number of each is its minimum or maximum
		least, err := strconv.Atoi(number.FindString(one))
		if err != nil || least <= has || strings.HasPrefix(strings.TrimSpace(one), "<") {
			return "", has
		}
	}
	return project.Engines.Node, has
}
