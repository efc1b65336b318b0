package corekinds_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/serve/corekinds"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

const (
	coreEvents = "/api/v1/namespaces/default/events"
	newEvents  = "/apis/events.k8s.io/v1/namespaces/default/events"
)

var (
	about = core.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "a", UID: "u", ResourceVersion: "7", FieldPath: "data.x"}
	first = metav1.Unix(1_700_000_000, 0)
)

// oldEvent is one as recorders of core/v1 write it.
func oldEvent() *core.Event {
	return &core.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "old"}, InvolvedObject: about, Reason: "Seen", Message: " it was seen\n", Type: core.EventTypeNormal,
		Source: core.EventSource{Component: "looker", Host: "here"}, FirstTimestamp: first, LastTimestamp: first, Count: 2,
	}
}

// newEvent is one as recorders of events.k8s.io/v1 write it.
func newEvent() *events.Event {
	return &events.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "new"}, EventTime: metav1.NewMicroTime(first.Add(123456 * time.Microsecond)),
		Series:              &events.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(first.Add(time.Hour))},
		ReportingController: "example.com/looker", ReportingInstance: "looker-1", Action: "Look", Reason: "Seen", Type: core.EventTypeWarning,
		Regarding: about, Related: &core.ObjectReference{Kind: "Secret", Name: "b"}, Note: "it was seen",
	}
}

func (c *cluster) record(t *testing.T) {
	t.Helper()
	const protobuf = "application/vnd.kubernetes.protobuf"
	c.must(201, "POST", coreEvents, message(t, "v1", "Event", oldEvent()), "Content-Type", protobuf)
	c.must(201, "POST", newEvents, message(t, "events.k8s.io/v1", "Event", newEvent()), "Content-Type", protobuf)
}

// Each group has the events of the other one, with the names that it has for their fields.
func TestEvents_OfOneGroupAreInTheOther(t *testing.T) {
	c := newCluster(t, corekinds.Config{})
	c.record(t)
	require.Equal(t, []string{"new", "old"}, c.items(coreEvents))
	require.Equal(t, []string{"new", "old"}, c.items("/apis/events.k8s.io/v1/events"))

	old := c.must(200, "GET", newEvents+"/old", "")
	require.Equal(t, "events.k8s.io/v1", old["apiVersion"])
	require.Equal(t, " it was seen\n", old["note"])
	require.Equal(t, "looker", at(old, "deprecatedSource.component"))
	require.EqualValues(t, 2, old["deprecatedCount"])
	require.Equal(t, "a", at(old, "regarding.name"))
	require.NotContains(t, old, "message")

	late := c.must(200, "GET", coreEvents+"/new", "")
	require.Equal(t, "v1", late["apiVersion"])
	require.Equal(t, "it was seen", late["message"])
	require.Equal(t, "example.com/looker", late["reportingComponent"])
	require.Equal(t, "data.x", at(late, "involvedObject.fieldPath"))
	require.Equal(t, "2023-11-14T22:13:20.123456Z", late["eventTime"])
	require.EqualValues(t, 3, at(late, "series.count"))
	require.Equal(t, "b", at(late, "related.name"))
	require.NotContains(t, late, "note")
}

// Patches, bodies and configurations are in the form of the group that they are sent to.
func TestEvents_AreChangedInTheFormOfTheGroup(t *testing.T) {
	c := newCluster(t, corekinds.Config{})
	c.record(t)
	c.must(200, "PATCH", coreEvents+"/new", `{"message":"again"}`, "Content-Type", merge)
	require.Equal(t, "again", c.must(200, "GET", newEvents+"/new", "")["note"])
	c.must(200, "PATCH", newEvents+"/new", `{"series":{"count":4}}`, "Content-Type", strategic)
	require.EqualValues(t, 4, at(c.must(200, "GET", coreEvents+"/new", ""), "series.count"))
	applied := c.must(200, "PATCH", newEvents+"/new?fieldManager=me&force=true", `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"labels":{"a":"b"}}}`, "Content-Type", apply)
	require.Equal(t, "b", at(applied, "metadata.labels.a"))

	// A body need not name its group, which the path does.
	c.must(201, "POST", newEvents, `{"metadata":{"name":"bare"},"eventTime":"2026-01-02T03:04:05.000000Z","type":"Normal","reason":"r","action":"a",
		"reportingController":"c","reportingInstance":"i","regarding":{"namespace":"default","name":"x"},"note":"n"}`)
	require.Equal(t, "n", c.must(200, "GET", coreEvents+"/bare", "")["message"])
	c.must(400, "POST", newEvents, `{"apiVersion":"v1","kind":"Event","metadata":{"name":"other"}}`)
	c.must(201, "PUT", coreEvents+"/put", `{"metadata":{"name":"put"},"involvedObject":{"namespace":"default"}}`)
}

func TestEvents_AreSelectedByFields(t *testing.T) {
	c := newCluster(t, corekinds.Config{})
	c.record(t)
	both := []string{"new", "old"}
	for selector, want := range map[string][]string{
		"involvedObject.kind=ConfigMap,involvedObject.namespace=default,involvedObject.name=a,involvedObject.uid=u": both,
		"involvedObject.apiVersion=v1,involvedObject.resourceVersion=7,involvedObject.fieldPath=data.x":             both,
		"reason=Seen": both, "type!=Normal": {"new"}, "source=looker": {"old"}, "source=example.com/looker": {"new"},
		"reportingComponent=example.com/looker": {"new"}, "involvedObject.name=b": nil,
	} {
		require.Equal(t, want, c.items(coreEvents+"?fieldSelector="+url.QueryEscape(selector)), selector)
	}
	for selector, want := range map[string][]string{
		"regarding.kind=ConfigMap,regarding.name=a": both, "reportingController=": {"old"}, "type=Warning,reason=Seen": {"new"},
	} {
		require.Equal(t, want, c.items(newEvents+"?fieldSelector="+url.QueryEscape(selector)), selector)
	}
	c.must(400, "GET", coreEvents+"?fieldSelector=regarding.name%3Da", "")
	c.must(400, "GET", newEvents+"?fieldSelector=involvedObject.name%3Da", "")
	c.must(400, "GET", newEvents+"?fieldSelector=source%3Da", "")
}

func TestEvents_TableIsThatOfKubectl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which begins in 2000
		first = metav1.NewTime(time.Now().Add(-3 * time.Minute))
		t.Cleanup(func() { first = metav1.Unix(1_700_000_000, 0) })
		c := newCluster(t, corekinds.Config{})
		late := newEvent()
		late.Series.LastObservedTime = metav1.NewMicroTime(first.Add(time.Minute))
		c.must(201, "POST", newEvents, message(t, "events.k8s.io/v1", "Event", late), "Content-Type", "application/vnd.kubernetes.protobuf")
		c.must(201, "POST", coreEvents, message(t, "v1", "Event", oldEvent()), "Content-Type", "application/vnd.kubernetes.protobuf")
		c.must(201, "POST", coreEvents, `{"metadata":{"name":"zero"},"involvedObject":{"namespace":"default","kind":"Widget"}}`)
		for _, path := range []string{coreEvents, newEvents} {
			names, cells := c.rows(path)
			require.Equal(t, []string{"Last Seen", "Type", "Reason", "Object", "Subobject", "Source", "Message", "First Seen", "Count", "Name"}, names)
			require.Equal(t, [][]any{
				{"2m", "Warning", "Seen", "configmap/a", "data.x", "example.com/looker, looker-1", "it was seen", "2m59s", "3", "new"},
				{"3m", "Normal", "Seen", "configmap/a", "data.x", "looker, here", "it was seen", "3m", "2", "old"},
				{"<unknown>", "", "", "widget", "", "", "", "<unknown>", "1", "zero"},
			}, cells)
		}
	})
}

// The rules of the newer group are stricter, and hold for what is written by it alone.
func TestEvents_EachGroupHasItsRules(t *testing.T) {
	c := newCluster(t, corekinds.Config{})
	c.record(t)
	require.Contains(t, c.refused("POST", coreEvents, `{"metadata":{"name":"x"},"involvedObject":{"namespace":"other"}}`), "does not match event.namespace")
	require.Contains(t, c.refused("POST", coreEvents, `{"metadata":{"name":"x"},"eventTime":"2026-01-02T03:04:05.000000Z","involvedObject":{"namespace":"default"}}`),
		"reportingComponent: Required value")
	told := c.refused("POST", newEvents, `{"metadata":{"name":"X"},"count":1,"deprecatedCount":1,"deprecatedFirstTimestamp":"2026-01-02T03:04:05Z","regarding":{},"series":{"count":1}}`)
	for _, what := range []string{
		"metadata.name: Invalid value", "eventTime: Required value", "type: Invalid value", "count: Invalid value", "firstTimestamp: Invalid value",
		"series.count: Invalid value", "series.lastObservedTime: Required value",
	} {
		require.Contains(t, told, what)
	}
	c.must(201, "POST", coreEvents, `{"metadata":{"name":"system:node"},"involvedObject":{"namespace":"default"}}`)
	long := strings.Repeat("x", 129)
	told = c.refused("PATCH", coreEvents+"/new", fmt.Sprintf(`{"reason":%q,"action":%[1]q,"reportingInstance":%[1]q,"reportingComponent":"a b","message":%q}`, long, strings.Repeat("x", 1025)), "Content-Type", merge)
	for _, what := range []string{"reason", "action", "reportingInstance", "message", "reportingComponent"} {
		require.Contains(t, told, what+": Invalid value")
	}
	for _, patch := range []string{`{"note":"x"}`, `{"type":"Normal"}`, `{"regarding":{"name":"b"}}`, `{"eventTime":"2026-01-02T03:04:05.000000Z"}`, `{"deprecatedCount":7}`} {
		require.Contains(t, c.refused("PATCH", newEvents+"/new", patch, "Content-Type", merge), "field is immutable", patch)
	}
	c.must(200, "PATCH", coreEvents+"/new", `{"message":"x"}`, "Content-Type", merge)
}

// An event lives as long after each change, by either group.
func TestEvents_Expire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, corekinds.Config{})
		c.record(t)
		time.Sleep(corekinds.DefaultEventTTL - time.Minute)
		c.must(200, "PATCH", coreEvents+"/new", `{"series":{"count":9}}`, "Content-Type", merge)
		time.Sleep(2 * time.Minute)
		require.Equal(t, []string{"new"}, c.items(newEvents))
		time.Sleep(corekinds.DefaultEventTTL)
		require.Empty(t, c.items(coreEvents))
	})
}

// A file has the events of both groups, in the form in which each was written last.
func TestEvents_AreThereAfterARestart(t *testing.T) {
	name := filepath.Join(t.TempDir(), "events.db")
	open := func() (*cluster, func()) {
		file, err := bolt.Open(name, bolt.Options{})
		require.NoError(t, err)
		c := newCluster(t, corekinds.Config{Storage: func(_ context.Context, kind string, schema store.Schema) (backend.Backend, error) {
			return bolt.New(file, kind, bolt.Config{Schema: schema})
		}})
		return c, func() { require.NoError(t, errors.Join(c.kinds.Close(), file.Close())) }
	}
	c, closeAll := open()
	c.record(t)
	before := []map[string]any{c.must(200, "GET", coreEvents+"/new", ""), c.must(200, "GET", newEvents+"/old", "")}
	closeAll()
	c, closeAll = open()
	defer closeAll()
	require.Equal(t, before, []map[string]any{c.must(200, "GET", coreEvents+"/new", ""), c.must(200, "GET", newEvents+"/old", "")})
	require.Equal(t, []string{"new"}, c.items(newEvents+"?fieldSelector=regarding.name%3Da,type%3DWarning"))
}

func TestConfig_WrongOnesAreRefused(t *testing.T) {
	_, err := corekinds.New(t.Context(), corekinds.Config{EventTTL: -time.Second})
	require.ErrorIs(t, err, engine.ErrConfig)
	require.ErrorContains(t, err, "EventTTL is -1s")
	broken := errors.New("no disk")
	none, err := corekinds.New(t.Context(), corekinds.Config{Storage: func(_ context.Context, name string, schema store.Schema) (backend.Backend, error) {
		if name == "events" {
			return nil, broken
		}
		return memoryOf(schema)
	}})
	require.ErrorIs(t, err, broken)
	require.Nil(t, none)
	kinds, err := corekinds.New(t.Context(), corekinds.Config{})
	require.NoError(t, err)
	require.ErrorIs(t, kinds.Start(t.Context(), nil), engine.ErrConfig)
	require.NoError(t, kinds.Close())
	require.NoError(t, kinds.Close())
}
