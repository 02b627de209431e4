// Package graphql validates requests, and the answers of a fake, against GitHub's published GraphQL schema.
package graphql

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the schema
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// GitHub's published GraphQL schema (MIT), version 15.26.1 of @octokit/graphql-schema, without prose and without the two
// fields' second definitions, which the GraphQL standard forbids.
//
//go:embed testdata/github-schema.graphql.gz
var packedSchema []byte

var loadSchema = sync.OnceValues(parseSchema) //nolint:gochecknoglobals // parsing takes a tenth of a second; nothing writes to the result

func parseSchema() (*ast.Schema, error) {
	zip, err := gzip.NewReader(bytes.NewReader(packedSchema))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		return nil, err
	}
	return gqlparser.LoadSchema(&ast.Source{Name: "github-schema.graphql", Input: string(text)})
}

// Operation is one valid GraphQL request.
type Operation struct {
	schema *ast.Schema
	def    *ast.OperationDefinition
}

// Parse parses and validates the document and its variables.
func Parse(document string, variables map[string]any) (Operation, error) {
	schema, err := loadSchema()
	if err != nil {
		return Operation{}, fmt.Errorf("read GitHub's GraphQL schema: %w", err)
	}
	query, errs := gqlparser.LoadQueryWithRules(schema, document, rules.NewDefaultRules())
	if len(errs) > 0 {
		return Operation{}, fmt.Errorf("GraphQL document: %w", errs)
	}
	if len(query.Operations) != 1 {
		return Operation{}, fmt.Errorf("GraphQL document: %d operations, want 1", len(query.Operations))
	}
	op := Operation{schema, query.Operations[0]}
	for name := range variables {
		if op.def.VariableDefinitions.ForName(name) == nil {
			return Operation{}, fmt.Errorf("GraphQL document: no variable $%s", name)
		}
	}
	if _, err := validator.VariableValues(schema, op.def, variables); err != nil {
		return Operation{}, fmt.Errorf("GraphQL variables: %w", err)
	}
	return op, nil
}

// Answer validates data: it has exactly the fields that the document selects, with the schema's types.
func (o Operation) Answer(data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return err
	}
	root := o.schema.Query
	if o.def.Operation == ast.Mutation {
		root = o.schema.Mutation
	}
	return o.object(root, o.def.SelectionSet, plain, "data")
}

// object validates an object of a type, or of one of its possible types.
func (o Operation) object(def *ast.Definition, selected ast.SelectionSet, value any, at string) error {
	got, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: want a %s, is %v", at, def.Name, value)
	}
	if def.IsAbstractType() {
		name, _ := got["__typename"].(string)
		possible := o.schema.GetPossibleTypes(def)
		i := slices.IndexFunc(possible, func(d *ast.Definition) bool { return d.Name == name })
		if i < 0 {
			return fmt.Errorf("%s: __typename %q is no %s", at, name, def.Name)
		}
		def = possible[i]
	}
	fields := map[string]*ast.Field{}
	o.collect(def, selected, fields)
	for name := range got {
		if fields[name] == nil {
			return fmt.Errorf("%s: %s was not asked for", at, name)
		}
	}
	for name, f := range fields {
		v, ok := got[name]
		if !ok {
			return fmt.Errorf("%s: %s is missing", at, name)
		}
		if err := o.value(f.Definition.Type, f.SelectionSet, v, at+"."+name); err != nil {
			return err
		}
	}
	return nil
}

// collect adds the selected fields of an object with a concrete type, by their names in the answer.
func (o Operation) collect(def *ast.Definition, selected ast.SelectionSet, fields map[string]*ast.Field) {
	appliesTo := func(condition string) bool {
		return condition == "" || slices.Contains(o.schema.GetPossibleTypes(o.schema.Types[condition]), def)
	}
	for _, s := range selected {
		switch s := s.(type) {
		case *ast.Field:
			fields[s.Alias] = s
		case *ast.InlineFragment:
			if appliesTo(s.TypeCondition) {
				o.collect(def, s.SelectionSet, fields)
			}
		case *ast.FragmentSpread:
			if appliesTo(s.Definition.TypeCondition) {
				o.collect(def, s.Definition.SelectionSet, fields)
			}
		}
	}
}

// value validates the value of a field.
func (o Operation) value(want *ast.Type, selected ast.SelectionSet, v any, at string) error {
	if v == nil {
		if want.NonNull {
			return fmt.Errorf("%s: want %s, is null", at, want)
		}
		return nil
	}
	if want.Elem != nil {
		list, ok := v.([]any)
		if !ok {
			return fmt.Errorf("%s: want %s, is %v", at, want, v)
		}
		for i, e := range list {
			if err := o.value(want.Elem, selected, e, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
		return nil
	}
	def := o.schema.Types[want.NamedType]
	ok := false
	switch {
	case def.IsCompositeType():
		return o.object(def, selected, v, at)
	case def.Kind == ast.Enum:
		s, isText := v.(string)
		ok = isText && def.EnumValues.ForName(s) != nil
	default:
		ok = isScalar(def.Name, v)
	}
	if !ok {
		return fmt.Errorf("%s: want %s, is %v", at, want, v)
	}
	return nil
}

// isScalar reports whether the JSON value v has the scalar type. GitHub's own scalars are strings.
func isScalar(name string, v any) bool {
	switch v := v.(type) {
	case bool:
		return name == "Boolean"
	case float64:
		return name == "Float" || name == "Int" && v == math.Trunc(v) && math.Abs(v) <= math.MaxInt32
	case string:
		if name == "DateTime" {
			_, err := time.Parse(time.RFC3339, v)
			return err == nil
		}
		return name != "Boolean" && name != "Float" && name != "Int"
	}
	return false
}
