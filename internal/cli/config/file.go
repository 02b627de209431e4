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
	"github.com/goccy/go-yaml/token"

	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/nearest"
	"github.com/ralph-pool/ralph/internal/yamlparse"
)

// maxFile is the maximum size of a file in bytes. No configuration is that long, and the parser's time is not linear.
const maxFile = 64 << 10

// readFile reads one configuration file. A missing file is an empty layer.
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

// load reads a regular file; any other kind of file could block or never end.
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

// own refuses a repository's file behind a link that leads out of the repository: errors quote the text, which may be a secret.
func own(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	top, err := filepath.EvalSymlinks(strings.TrimSuffix(path, File))
	if err == nil && !keys.Inside(real, top) {
		err = errors.New("is a link out of the repository")
	}
	return err
}

// reason removes operation and path from an error, because the problem names the file already.
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

// document calls body with the file's document, if there is one.
func (f *file) document(data []byte, body func(ast.Node)) {
	if !utf8.Valid(data) {
		f.layer.fail(f.path, "is not UTF-8 text")
		return
	}
	// The parser's own check of duplicates misses some; entry finds them all.
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
			f.layer.fail(f.at(line(d.Body)), "a second YAML document; a file may have only one")
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

// mapping reads the keys below parent, which is "" or the first part of dotted keys, such as "local".
func (f *file) mapping(n ast.Node, parent string) {
	for _, v := range f.pairs(n, cmp.Or(parent, "the file")) {
		f.entry(v, parent)
	}
}

// pairs returns the entries of a mapping. what names the mapping in an error.
func (f *file) pairs(n ast.Node, what string) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	f.fail(n, what+" must have \"key: value\" lines")
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
	case known && empty(n.Value): // "model:" without a value counts as unset
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

// expand replaces $NAME and ${NAME} in a path. It does not in a repository's file: its author could make errors show variables.
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
			return nil, fmt.Errorf("must be %s, not a list", k.Wanted())
		}
		items := make([]string, 0, len(seq.Values))
		for i, item := range seq.Values {
			s, ok := text(item)
			if !ok {
				return nil, fmt.Errorf("line %d is not text; put it in quotes", line(item))
			}
			if k.Command(i) && !written(item) {
				return nil, notCommand(s)
			}
			items = append(items, s)
		}
		return items, nil
	}
	s, ok := text(n)
	if !ok {
		return nil, fmt.Errorf("must be %s", k.Wanted())
	}
	if k.Command(0) && !written(n) {
		return nil, notCommand(s)
	}
	if k.List() {
		return k.ListText(s, false)
	}
	return k.Scalar(s)
}

// notCommand refuses a value of another type: somebody who writes "gate: true" wants a gate, and not a program that always succeeds.
func notCommand(s string) error {
	return fmt.Errorf("%s is not a command; put it in quotes if you mean the program", s)
}

// written reports whether a scalar is text in YAML, and not a number or a boolean, also of YAML 1.1: the program yes would not end.
func written(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.StringNode:
		boolean := slices.Contains([]string{"y", "yes", "n", "no", "on", "off"}, strings.ToLower(n.Value))
		return !boolean || n.GetToken().Type != token.StringType
	case *ast.LiteralNode:
		return true
	}
	return false
}

// text returns a scalar as written, without its quotes.
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
