package resttest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

var (
	_ rest.StandardStorage            = (*storage)(nil)
	_ rest.Storage                    = (*storage)(nil)
	_ rest.Scoper                     = (*storage)(nil)
	_ rest.MayReturnFullObjectDeleter = (*storage)(nil)
)

// storage is a kind of a registry as storage of the API server. The functions by which the
// API server passes admission to storage are not called: a registry has its own admitters.
type storage struct {
	resource registry.Resource
	// engine takes the suite's writes past the rules.
	engine *engine.Engine[Widget]
	// server serves the resource, for tables.
	server *httptest.Server
	// returnsDeleted: Delete returns the last state of what it deletes, not a Status.
	returnsDeleted bool
}

func (s *storage) New() runtime.Object              { return &Widget{} }
func (s *storage) NewList() runtime.Object          { return &WidgetList{} }
func (s *storage) Destroy()                         {}
func (s *storage) NamespaceScoped() bool            { return !s.kind().ClusterScoped }
func (s *storage) DeleteReturnsDeletedObject() bool { return s.returnsDeleted }
func (s *storage) kind() registry.Kind              { return s.resource.Info().Kind }

// key is the key of the object with that name in the request's namespace.
func (s *storage) key(ctx context.Context, name string) string {
	return s.kind().Key(request.NamespaceValue(ctx), name)
}

func (s *storage) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	it, err := s.resource.Get(ctx, s.key(ctx, name), engine.GetOptions{})
	if err != nil {
		return nil, s.status(err, name)
	}
	return decode(it)
}

func (s *storage) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	page, err := s.resource.List(ctx, s.which(ctx, options))
	if err != nil {
		return nil, s.status(err, "")
	}
	return listOf(&page)
}

// which selects the objects in the request's namespace that the options select.
func (s *storage) which(ctx context.Context, options *internalversion.ListOptions) engine.ListOptions {
	var o engine.ListOptions
	if s.NamespaceScoped() {
		o.Prefix = request.NamespaceValue(ctx) + "/"
	}
	if options != nil {
		o.LabelSelector, o.FieldSelector = options.LabelSelector, options.FieldSelector
	}
	return o
}

// ConvertToTable returns the table that the server answers with, with the list's metadata.
func (s *storage) ConvertToTable(ctx context.Context, object, _ runtime.Object) (*metav1.Table, error) {
	list, ok := object.(*WidgetList)
	if !ok {
		return nil, fmt.Errorf("a table of a %T", object)
	}
	kind := s.kind()
	path := []string{s.server.URL, "apis", kind.Group, kind.Version}
	if s.NamespaceScoped() {
		path = append(path, "namespaces", request.NamespaceValue(ctx))
	}
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.Join(append(path, kind.Plural), "/"), http.NoBody)
	if err != nil {
		return nil, err
	}
	get.Header.Set("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	response, err := s.server.Client().Do(get)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(response.Body)
	table := &metav1.Table{}
	err = errors.Join(err, response.Body.Close(), json.Unmarshal(text, table))
	table.ListMeta = list.ListMeta
	return table, err
}

// decode returns the object of an item.
func decode(it registry.Item) (*Widget, error) {
	text, err := it.JSON()
	if err != nil {
		return nil, err
	}
	w := &Widget{}
	return w, json.Unmarshal(text, w)
}

// listOf returns the objects of a page.
func listOf(page *registry.Page) (*WidgetList, error) {
	list := &WidgetList{ListMeta: metav1.ListMeta{ResourceVersion: page.Revision.String()}}
	for i := range page.Len() {
		w, err := decode(page.Item(i))
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, *w)
	}
	return list, nil
}

// status returns the API server's error for one of the registry.
func (s *storage) status(err error, name string) error {
	resource := s.kind().GroupResource()
	var invalid *registry.InvalidError
	switch {
	case errors.As(err, &invalid):
		return apierrors.NewInvalid(schema.GroupKind{Group: invalid.Kind.Group, Kind: invalid.Kind.Kind}, invalid.Name, invalid.Errors)
	case errors.As(err, new(*registry.BadRequestError)):
		return apierrors.NewBadRequest(err.Error())
	case errors.Is(err, engine.ErrNotFound):
		return apierrors.NewNotFound(resource, name)
	case errors.Is(err, engine.ErrExists):
		return apierrors.NewAlreadyExists(resource, name)
	case errors.Is(err, engine.ErrConflict):
		return apierrors.NewConflict(resource, name, err)
	}
	return err
}
