package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/nearest"
	"github.com/ralph-pool/ralph/internal/yamlparse"
)

// maxFile bounds what is parsed: a configuration is not that long, and the parser is not linear.
const maxFile = 64 << 10

// readFile reads one configuration file; a file that does not exist is an empty layer.
func readFile(path string, s Source, r rules) *layer {
	l := newLayer(s)
	data, err := load(path)
	if err == nil && s == FromRepository {
		err = own(path)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			l.fail(path, reason(err))
		}
		return l
	}
	f := &file{path: path, rules: r, layer: l, seen: map[string]int{}}
	f.parse(data)
	return l
}

// load reads a regular file; anything else could block or never end.
func load(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("is larger than %d KiB", maxFile>>10)
	}
	return data, nil
}

// own refuses a repository's file that a link leads to elsewhere: what is wrong in it is quoted, and it may be a secret of the user's.
func own(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	top, err := filepath.EvalSymlinks(strings.TrimSuffix(path, File))
	if err == nil && !keys.Inside(real, top) {
		err = errors.New("is a link that leads out of the repository")
	}
	return err
}

// reason drops the operation and the path, which the problem already names.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return "cannot be read: " + pe.Err.Error()
	}
	return err.Error()
}

// file reads the tree of one YAML file into a layer.
type file struct {
	path  string
	rules rules
	layer *layer
	seen  map[string]int // line of each key
}

func (f *file) at(line int) string { return f.path + ":" + strconv.Itoa(line) }

func (f *file) parse(data []byte) { f.document(data, func(n ast.Node) { f.mapping(n, "") }) }

// document calls body with the file's one document, if it has any.
func (f *file) document(data []byte, body func(ast.Node)) {
	if !utf8.Valid(data) {
		f.layer.fail(f.path, "is not UTF-8 text")
		return
	}
	// Duplicates are allowed here because the parser compares less than this file does; see entry.
	doc, err := yamlparse.Parse(data, parser.AllowDuplicateMapKey())
	if wrong, ok := errors.AsType[*yamlparse.Error](err); ok {
		f.layer.fail(f.at(wrong.Line), "not valid YAML: "+wrong.Text)
		return
	}
	bodies := 0
	for _, d := range doc.Docs {
		if empty(d.Body) {
			continue
		}
		if bodies++; bodies > 1 {
			f.layer.fail(f.at(line(d.Body)), "a second YAML document; one file is one document")
			return
		}
		body(d.Body)
	}
}

func empty(n ast.Node) bool {
	switch n.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode, *ast.CommentNode:
		return true
	}
	return false
}

func line(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1
	}
	return n.GetToken().Position.Line
}

// mapping reads the keys below parent ("" or "local").
func (f *file) mapping(n ast.Node, parent string) {
	for _, v := range f.pairs(n, cmp.Or(parent, "the file")) {
		f.entry(v, parent)
	}
}

// pairs are the lines of a mapping; what names it in an error.
func (f *file) pairs(n ast.Node, what string) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	f.fail(n, what+" must hold \"key: value\" lines")
	return nil
}

func (f *file) fail(n ast.Node, message string) { f.layer.fail(f.at(line(n)), message) }

func (f *file) entry(n *ast.MappingValueNode, parent string) {
	at := line(n.Key)
	name := n.Key.GetToken().Value
	if parent != "" {
		name = parent + "." + name
	}
	if first, twice := f.seen[name]; twice {
		f.layer.fail(f.at(at), fmt.Sprintf("%s is set twice; first on line %d", name, first))
		return
	}
	f.seen[name] = at
	k, known := keys.Lookup(name)
	switch {
	case known && empty(n.Value): // "model:" with nothing after it: as if it were not there
	case known:
		f.value(k, n.Value, at)
	case isGroup(name):
		if !empty(n.Value) {
			f.mapping(n.Value, name)
		}
	default:
		hint := cmp.Or(nearest.DidYouMean(name, "", keys.AllNames()), "; `ralph config` lists the keys")
		f.layer.fail(f.at(at), fmt.Sprintf("unknown key %q%s", name, hint))
	}
}

// isGroup reports whether name is the first part of dotted keys.
func isGroup(name string) bool {
	return slices.ContainsFunc(keys.AllNames(), func(k string) bool { return strings.HasPrefix(k, name+".") })
}

func (f *file) value(k keys.Key, n ast.Node, at int) {
	v, err := f.read(k, n)
	if err != nil {
		for _, e := range unjoin(err) {
			f.layer.fail(f.at(at), k.Name+": "+e.Error())
		}
		return
	}
	f.layer.written[k.Name] = v
	if s, ok := v.(string); ok && k.Kind == keys.Path {
		v = f.expand(n, s)
	}
	f.layer.set(k, k.Place(v, f.rules.repo, f.rules.home), f.at(at), k.Name, f.rules.choices(k))
}

// expand replaces $NAME and ${NAME} in a path by variables, but not in a repository's file: its author could have them shown.
func (f *file) expand(n ast.Node, path string) string {
	if f.layer.source == FromRepository {
		return path
	}
	return os.Expand(path, func(name string) string {
		value := Getenv(f.rules.environ, name)
		if value == "" {
			f.fail(n, fmt.Sprintf("the variable %s is not set", name))
		}
		return value
	})
}

func (f *file) read(k keys.Key, n ast.Node) (any, error) {
	if seq, ok := n.(*ast.SequenceNode); ok {
		if !k.List() {
			return nil, fmt.Errorf("%s is wanted, not a list", k.Wanted())
		}
		items := make([]string, 0, len(seq.Values))
		for _, item := range seq.Values {
			s, ok := text(item)
			if !ok {
				return nil, fmt.Errorf("line %d is not a text; put it in quotes", line(item))
			}
			items = append(items, s)
		}
		return items, nil
	}
	s, ok := text(n)
	if !ok {
		return nil, fmt.Errorf("%s is wanted", k.Wanted())
	}
	if k.List() {
		return k.ListText(s, false)
	}
	return k.Scalar(s)
}

// text is a scalar as it was written, without its quotes.
func text(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return strings.TrimSuffix(n.Value.Value, "\n"), true
	case *ast.BoolNode:
		return strconv.FormatBool(n.Value), true
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}
