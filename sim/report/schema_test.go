package report_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/report"
)

// fields returns the paths of all values in the JSON of a type, as SCHEMA.md lists them.
func fields(t reflect.Type, path string) (all []string) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return []string{path}
	case t.Kind() == reflect.Slice:
		return fields(t.Elem(), path+"[]")
	case t.Kind() == reflect.Map:
		return fields(t.Elem(), path+".*")
	case t.Kind() != reflect.Struct:
		return []string{path}
	}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		all = append(all, fields(t.Field(i).Type, strings.TrimPrefix(path+"."+name, "."))...)
	}
	return all
}

func TestSchema_ListsEveryFieldInItsOrder(t *testing.T) {
	document, err := os.ReadFile("SCHEMA.md")
	require.NoError(t, err)
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (?:string|boolean|integer|number)[^|]* \\| [^|]+ \\|$").FindAllStringSubmatch(string(document), -1) {
		listed = append(listed, row[1])
	}
	require.Equal(t, fields(reflect.TypeFor[report.Report](), ""), listed)
	require.Contains(t, string(document), "`"+report.Schema+"`")
}
