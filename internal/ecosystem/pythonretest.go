package ecosystem

import "github.com/ralph-pool/ralph/internal/pattern"

// The parts of the patterns below. pyLaunch is how a line may start a program of an environment, and pyFolder the folder of one.
const (
	pyCommand = `(?:^|[;&|(])\s*(?:\w+=\S*\s+)*`
	pyLaunch  = `(?:(?:uv|poetry|pdm|pipenv) run(?: --?[\w-]+(?:[= ][\w.,:/+-]+)?)* )?`
	pyFolder  = `(?:[\w./~+-]*/)?`
	pyProgram = pyCommand + `(` + pyLaunch + pyFolder + `python[\d.]*)(?: -[A-Z]\S*(?: \w+)??)*? -m `
)

var (
	pyRunsUnittest    = pattern.Lazy(pyProgram + `unittest\b`)
	pyRunsPytest      = pattern.Lazy(pyProgram + `pytest\b`)
	pytestRuns        = pattern.Lazy(pyCommand + `(` + pyLaunch + pyFolder + `pytest)(?:\s|$)`)
	pyActivates       = pattern.Lazy(`(?:^|[;&|(]\s*)(?:\.|source) ([\w./~+-]+/bin)/activate\b.*\bpytest\b`)
	pyEnvironment     = pattern.Lazy(`(?:^|[\s;&|(])([\w./~+-]*env[\w.-]*/bin)/(?:python|pip|pytest|tox|coverage)`)
	pyLauncher        = pattern.Lazy(`\b((?:uv|poetry|pdm|pipenv)) (?:run|sync|install)\b`)
	pyTestsNotStarted = pattern.Lazy(`(?m)^\S*python[\d.]*: No module named (?:pytest|unittest)\b|^ERROR: usage: .*(?:\n.*: error: .*)?|` +
		`^error: Failed to spawn: |^Command not found: p[\w.-]+$`)
)

// pythonRetests returns the commands of unittest and pytest, with the interpreter that the gate or setup names. Another one may
// lack what the tests need.
func pythonRetests() []Retest {
	list := []Retest{
		{Names: pyRunsUnittest, Line: "{program} -B -m unittest {file}", Empty: []int{5}},
		{Names: pyRunsPytest, Line: "{program} -m pytest -q {file}"},
		{Names: pyActivates, Line: "{program}/python -m pytest -q {file}"},
		{Names: pytestRuns, Line: "{program} -q {file}"},
		{Gate: "unittest", Line: "python3 -B -m unittest {file}", Empty: []int{5}},
		{Names: pyEnvironment, Setup: true, Line: "{program}/python -m pytest -q {file}"},
		{Names: pyLauncher, Setup: true, Line: "{program} run python -m pytest -q {file}"},
		{Line: "python3 -m pytest -q {file}"},
	}
	for i := range list {
		list[i].Unbuilt = []string{"ImportError", "ModuleNotFoundError", "SyntaxError"} // a module could not be imported
		list[i].Unstarted = pyTestsNotStarted
		if list[i].Empty == nil {
			list[i].Empty = []int{4, 5} // wrong usage, such as a missing file, and no test
		}
	}
	return list
}
