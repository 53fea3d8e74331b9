# SPDX-License-Identifier: BSD-3-Clause
"""The report: every application and study of the project, computed here and shown on one page: ``gossamer demo``."""
