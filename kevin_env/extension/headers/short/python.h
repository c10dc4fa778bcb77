// The part of Python's C API that a binding needs, without Python.h, which takes longer to read than all of this.
#pragma once

#include <stddef.h>
#include <sys/types.h>

extern "C" {
struct _object;
struct _typeobject;
extern _typeobject PyFloat_Type, PyUnicode_Type, PyBytes_Type, PyGen_Type, PySet_Type, PyFrozenSet_Type;
extern _object _Py_NoneStruct;
extern _object *PyExc_TypeError, *PyExc_RuntimeError, *PyExc_NotImplementedError, *PyExc_ValueError,
    *PyExc_IndexError, *PyExc_OverflowError, *PyExc_MemoryError, *PyExc_ImportError;
void Py_IncRef(_object*);
void Py_DecRef(_object*);
_object* PyObject_Type(_object*);
_object* PyObject_Repr(_object*);
_object* PyObject_GetAttrString(_object*, const char*);
int PyObject_SetAttrString(_object*, const char*, _object*);
int PyType_IsSubtype(_typeobject*, _typeobject*);
void* PyType_GetSlot(_typeobject*, int);
const char* PyUnicode_AsUTF8AndSize(_object*, ssize_t*);
_object* PyUnicode_DecodeUTF8(const char*, ssize_t, const char*);
_object* PyUnicode_FromString(const char*);
int PyUnicode_CompareWithASCIIString(_object*, const char*);
int PyBytes_AsStringAndSize(_object*, char**, ssize_t*);
long PyLong_AsLong(_object*);
unsigned long PyLong_AsUnsignedLong(_object*);
_object* PyLong_FromLong(long);
_object* PyLong_FromUnsignedLong(unsigned long);
_object* PyBool_FromLong(long);
double PyFloat_AsDouble(_object*);
_object* PyFloat_FromDouble(double);
int PyNumber_Check(_object*);
_object* PyNumber_Float(_object*);
_object* PyNumber_Long(_object*);
int PySequence_Check(_object*);
_object* PySequence_Tuple(_object*);
ssize_t PyTuple_Size(_object*);
_object* PyTuple_GetItem(_object*, ssize_t);
_object* PyTuple_New(ssize_t);
int PyTuple_SetItem(_object*, ssize_t, _object*);
_object* PyList_New(ssize_t);
int PyList_SetItem(_object*, ssize_t, _object*);
_object* PyErr_Occurred();
void PyErr_Clear();
void PyErr_SetString(_object*, const char*);
_object* PyCapsule_New(void*, const char*, void (*)(_object*));
void* PyCapsule_GetPointer(_object*, const char*);
_object* PyModule_GetNameObject(_object*);
void* PyEval_SaveThread();
void PyEval_RestoreThread(void*);
_object* PyObject_CallFunctionObjArgs(_object*, ...);
void PyErr_Fetch(_object**, _object**, _object**);
void PyErr_NormalizeException(_object**, _object**, _object**);
void PyErr_Restore(_object*, _object*, _object*);
void PyException_SetCause(_object*, _object*);
void PyException_SetContext(_object*, _object*);
}

namespace kevin_short {

struct MethodDef {  // PyMethodDef, PyModuleDef: their layout is part of Python's stable interface
  const char* name;
  void* function;
  int flags;
  const char* doc;
};
struct ModuleDef {
  ssize_t references;
  void* type;
  void* init;
  ssize_t index;
  void* copy;
  const char* name;
  const char* doc;
  ssize_t size;
  void* rest[5];
};
extern "C" {
_object* PyCMethod_New(MethodDef*, _object*, _object*, _typeobject*);
_object* PyModule_Create2(ModuleDef*, int);
}
constexpr int FASTCALL_KEYWORDS = 0x0082, API_VERSION = 1013, NB_BOOL = 9;

inline bool is_none(_object* object) { return object == &_Py_NoneStruct; }
inline _object* none() {
  Py_IncRef(&_Py_NoneStruct);
  return &_Py_NoneStruct;
}
inline _typeobject* type_of(_object* object) {  // borrowed: the object keeps it alive
  _object* type = PyObject_Type(object);
  Py_DecRef(type);
  return reinterpret_cast<_typeobject*>(type);
}
inline bool derives(_object* object, _typeobject& type) { return PyType_IsSubtype(type_of(object), &type); }
inline bool is_float(_object* object) { return derives(object, PyFloat_Type); }

class Owned {
  _object* object_;

 public:
  explicit Owned(_object* object) : object_(object) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { Py_DecRef(object_); }
  _object* get() const { return object_; }
  explicit operator bool() const { return object_; }
};

struct ErrorIsSet {};  // thrown where Python's error has been set already

}  // namespace kevin_short
