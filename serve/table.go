package serve

import (
	"encoding/json"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/accept"
	"github.com/watchmill/watchmill/serve/internal/status"
	"github.com/watchmill/watchmill/usercode"
)

// tableOf turns objects of a kind into the rows of a table.
type tableOf struct {
	*Server
	info    *registry.Info
	include metav1.IncludeObjectPolicy
	lean    bool // the objects in rows have no managed fields
	beta    bool // the table is of version v1beta1
}

// tableOf reads which parts of the objects the client asks for in the rows.
func (c *call) tableOf() (*tableOf, error) {
	t := &tableOf{c.Server, c.info, metav1.IncludeObjectPolicy(c.req.query.Get("includeObject")), c.lean, c.shape == accept.BetaTable}
	switch t.include {
	case "":
		t.include = metav1.IncludeMetadata
	case metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject:
	default:
		return nil, status.BadRequest("includeObject is %q: give None, Metadata or Object", t.include)
	}
	return t, nil
}

// columns returns the definitions of the columns: Name, the kind's own and, unless it has one or wants none, Age.
func (t *tableOf) columns() []metav1.TableColumnDefinition {
	all := []metav1.TableColumnDefinition{{
		Name: "Name", Type: "string", Format: "name", Description: "Name of the object, unique in its namespace.",
	}}
	for _, c := range t.info.Columns {
		all = append(all, metav1.TableColumnDefinition{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Priority: int32(c.Priority),
		})
	}
	if !t.addsAge() {
		return all
	}
	return append(all, metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: "Time since the object was created."})
}

// addsAge reports whether tables have the column Age without the kind having one.
func (t *tableOf) addsAge() bool {
	return !t.info.NoAge && !slices.ContainsFunc(t.info.Columns, func(c registry.ColumnInfo) bool { return c.Name == "Age" })
}

// row returns an object's row as JSON.
func (t *tableOf) row(item registry.Item) ([]byte, error) {
	m := item.Meta()
	cells := []any{m.GetName()}
	if err := usercode.Call("Column.Value", item.Key(), func() { cells = item.AppendCells(cells) }); err != nil {
		return nil, err
	}
	if t.addsAge() {
		cells = append(cells, age(m.GetCreationTimestamp()))
	}
	text, err := json.Marshal(cells)
	if err != nil {
		return nil, apierrors.NewInternalError(err) // like an error of encoding the object
	}
	object, err := t.object(item)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte(`{"cells":`), text, []byte(`,"object":`), object, []byte(`}`)), nil
}

// object returns as much of an object as its row is to have. It is not encoded again for the
// row, as it would be in a [metav1.TableRow].
func (t *tableOf) object(item registry.Item) ([]byte, error) {
	switch t.include {
	case metav1.IncludeObject:
		return t.encodings.forRead(encodable{item, accept.Whole, t.lean})
	case metav1.IncludeMetadata:
		return t.encodings.forRead(encodable{item, accept.Partial, t.lean})
	}
	return []byte("null"), nil
}

func age(t metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t.Time))
}

// head returns the beginning of a table, up to its rows.
func (t *tableOf) head(list metav1.ListMeta, withColumns bool) ([]byte, error) {
	table := struct {
		Kind       string                         `json:"kind"`
		APIVersion string                         `json:"apiVersion"`
		Metadata   metav1.ListMeta                `json:"metadata"`
		Columns    []metav1.TableColumnDefinition `json:"columnDefinitions"`
	}{"Table", metav1.GroupName + "/v1", list, nil}
	if t.beta {
		table.APIVersion = metav1.GroupName + "/v1beta1"
	}
	if withColumns {
		table.Columns = t.columns()
	}
	text, err := json.Marshal(table)
	if err != nil {
		return nil, err
	}
	return append(text[:len(text)-1], `,"rows":[`...), nil
}

// single returns a table of one row.
func (t *tableOf) single(version string, row []byte, withColumns bool) ([]byte, error) {
	text, err := t.head(metav1.ListMeta{ResourceVersion: version}, withColumns)
	if err != nil {
		return nil, err
	}
	text = append(text, row...)
	return append(text, "]}"...), nil
}
